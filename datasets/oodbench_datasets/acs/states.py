"""The 50 states, and which of them the synthetic census sample can model from rows of their own."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

_CODES = """
    AL=1 AK=2 AZ=4 AR=5 CA=6 CO=8 CT=9 DE=10 FL=12 GA=13 HI=15 ID=16 IL=17 IN=18 IA=19 KS=20 KY=21
    LA=22 ME=23 MD=24 MA=25 MI=26 MN=27 MS=28 MO=29 MT=30 NE=31 NV=32 NH=33 NJ=34 NM=35 NY=36 NC=37
    ND=38 OH=39 OK=40 OR=41 PA=42 RI=44 SC=45 SD=46 TN=47 TX=48 UT=49 VT=50 VA=51 WA=53 WV=54 WI=55
    WY=56
"""
FIPS: Mapping[str, int] = MappingProxyType(
    {state: int(code) for state, code in (pair.split("=") for pair in _CODES.split())}
)
"""The number of each state in the column ST; the District of Columbia is not a state."""

STATES: tuple[str, ...] = tuple(sorted(FIPS))

POOLED: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {"CA": ("AZ", "NV", "OR", "WA"), "TX": ("AR", "LA", "NM", "OK")}
)
"""States without rows of their own, and the neighbours they are drawn from, each by its number of census rows."""

FITTED: tuple[str, ...] = tuple(state for state in STATES if state not in POOLED)
"""The states that have rows of their own, in the order of the parameter file."""
