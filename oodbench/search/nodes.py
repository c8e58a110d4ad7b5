"""What the nodes of a cluster have: room for a pack, and the software that this process has."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from oodbench.errors import Unreachable
from oodbench.plugin.method import Method

COMPARED = ("oodbench", "torch", "numpy", "ray")
ANSWER_SECONDS = 120


def check_room(asked: Mapping[str, float]) -> None:
    """Ray would wait without end for a node that has what a pack asks for."""
    nodes = [node["Resources"] for node in _alive()]
    if any(all(node.get(name, 0) >= amount for name, amount in asked.items()) for node in nodes):
        return
    kinds = Counter(_amounts({name: node.get(name, 0) for name in ("CPU", "GPU")}) for node in nodes)
    available = "; ".join(f"{count} node{'s' * (count > 1)} with {kind}" for kind, count in kinds.items())
    raise Unreachable(
        f"no node of the Ray cluster has {_amounts(asked)} for a pack; it has {available}.\n"
        "Ask for less with --cpus-per-pack or --gpus-per-pack."
    )


def count_room(asked: Mapping[str, float]) -> int:
    """How many packs the cluster can hold at a time, at least one."""
    nodes = [node["Resources"] for node in _alive()]
    return max(1, sum(min(int(node.get(name, 0) / amount) for name, amount in asked.items()) for node in nodes))


def check_software(methods: Iterable[Method]) -> None:
    """Every node must have our versions and our methods' source: others would give other numbers, or none."""
    import ray
    from ray.exceptions import GetTimeoutError, RayError
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    inquire = _inquiry()
    modules = sorted({type(method).__module__ for method in methods} - _travelling())
    here = inquire(COMPARED, modules)
    answers = {}
    for node in _alive():
        on_node = NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)
        task = ray.remote(inquire).options(num_cpus=0, max_retries=0, scheduling_strategy=on_node)
        answers[task.remote(COMPARED, modules)] = node["NodeManagerAddress"]
    differing = []
    for answer, address in answers.items():
        try:
            software = ray.get(answer, timeout=ANSWER_SECONDS)
        except GetTimeoutError:
            differing.append(f"node {address} starts no worker")
        except RayError as error:
            differing.append(f"node {address} cannot report its software: {str(error).strip().rpartition(chr(10))[2]}")
        else:
            unlike = [f"{name} {software[name]} (here {here[name]})" for name in here if software[name] != here[name]]
            differing += [f"node {address} has {', '.join(unlike)}"] if unlike else []
    if differing:
        more = f"; {len(differing) - 1} more differ" if len(differing) > 1 else ""
        raise Unreachable(
            f"{differing[0]}{more}.\nInstall the same versions on every node, for example with one constraints file."
        )


def _alive() -> list[dict[str, Any]]:
    import ray

    return [node for node in ray.nodes() if node["Alive"]]  # type: ignore[no-untyped-call]


def _inquiry() -> Callable[[Sequence[str], Sequence[str]], dict[str, str]]:
    """What a process has. Being local, the function is sent by value: a node without oodbench can run it too."""

    def software(packages: Sequence[str], modules: Sequence[str]) -> dict[str, str]:
        import hashlib
        import importlib
        import inspect
        import platform
        from importlib.metadata import PackageNotFoundError, version

        versions = {"python": platform.python_version()}
        for package in packages:
            try:
                versions[package] = version(package)
            except PackageNotFoundError:
                versions[package] = "not installed"
        for module in modules:
            try:
                source = inspect.getsource(importlib.import_module(module))
                versions[f"source of {module}"] = hashlib.sha256(source.encode()).hexdigest()[:8]
            except (ImportError, OSError, TypeError):
                versions[f"source of {module}"] = "not installed"
        return versions

    return software


def _travelling() -> set[str]:
    """Modules whose classes are sent along rather than imported."""
    from ray import cloudpickle

    return {"__main__", *cloudpickle.list_registry_pickle_by_value()}  # type: ignore[no-untyped-call]


def _amounts(resources: Mapping[str, float]) -> str:
    named = [f"{amount:g} {name}{'s' * (amount != 1)}" for name, amount in resources.items() if amount]
    return " and ".join(named) or "neither CPU nor GPU"
