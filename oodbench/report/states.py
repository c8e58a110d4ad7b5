"""Where the states of the USA stand in a map of equal tiles, by postal code."""

from __future__ import annotations

_MAP = """
    ..  ..  ..  ..  ..  ..  ..  ..  ..  ..  ..  ME
    AK  ..  ..  ..  ..  ..  ..  ..  ..  ..  VT  NH
    ..  WA  ID  MT  ND  MN  IL  WI  MI  NY  RI  MA
    ..  OR  NV  WY  SD  IA  IN  OH  PA  NJ  CT  ..
    ..  CA  UT  CO  NE  MO  KY  WV  VA  MD  DE  ..
    ..  ..  AZ  NM  KS  AR  TN  NC  SC  DC  ..  ..
    ..  ..  ..  ..  OK  LA  MS  AL  GA  ..  ..  ..
    HI  ..  ..  ..  TX  ..  ..  ..  ..  FL  ..  PR
"""
TILES: dict[str, tuple[int, int]] = {
    code: (row, column)
    for row, line in enumerate(_MAP.split("\n")[1:-1])
    for column, code in enumerate(line.split())
    if code != ".."
}
"""Row from the top and column from the left: the 50 states, the District of Columbia and Puerto Rico."""
