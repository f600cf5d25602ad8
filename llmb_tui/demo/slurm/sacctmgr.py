"""`sacctmgr show`: the site's one account and its one user."""

from __future__ import annotations

import sys
from collections.abc import Iterable

from llmb_tui.demo.slurm import facts
from llmb_tui.demo.slurm.options import Parser, Refusal
from llmb_tui.demo.slurm.store import Store

OPTIONS = "immediate/i noheader/n oneliner/o parsable/p parsable2/P quiet/Q associations/s version/V"

_ENTITIES = {
    "account": ("account", "accounts", "acct"),
    "association": ("association", "associations", "assoc", "assocs"),
    "cluster": ("cluster", "clusters"),
    "qos": ("qos",),
    "user": ("user", "users"),
}
_DEFAULTS = {
    "account": ("account", "description", "organization"),
    "association": ("cluster", "account", "user", "partition", "share", "priority", "maxjobs", "maxwall", "qos"),
    "cluster": ("cluster", "controlhost", "controlport"),
    "qos": ("name", "priority", "maxwall"),
    "user": ("user", "defaultaccount", "adminlevel"),
}
_TITLES = {
    "account": "Account",
    "adminlevel": "Admin",
    "cluster": "Cluster",
    "controlhost": "ControlHost",
    "controlport": "ControlPort",
    "defaultaccount": "Def Acct",
    "defaultqos": "Def QOS",
    "description": "Descr",
    "fairshare": "Share",
    "grptres": "GrpTRES",
    "maxjobs": "MaxJobs",
    "maxsubmit": "MaxSubmit",
    "maxtres": "MaxTRES",
    "maxwall": "MaxWall",
    "name": "Name",
    "organization": "Org",
    "partition": "Partition",
    "priority": "Priority",
    "qos": "QOS",
    "share": "Share",
    "user": "User",
}
_VALID_ENTITIES = (
    'Input line must include "Account", "Association", "Cluster", "Configuration",\n'
    '"Event", "Federation", "Problem", "QOS", "Resource", "Reservation",\n'
    '"RunAwayJobs", "Stats", "Transaction", "TRES", "User", or "WCKey"'
)
Row = dict[str, str]


def main(store: Store, arguments: list[str]) -> int:
    """Run `sacctmgr show ENTITY [where] [KEY=VALUE …] [format=…]`; `list` is the same as `show`."""
    asked = Parser("sacctmgr", OPTIONS).parse(arguments)
    if "version" in asked:
        sys.stdout.write(f"slurm {facts.VERSION}\n")
        return 0
    if store.fault("no-accounting") is not None:
        raise Refusal("You are not running a supported accounting_storage plugin")
    verb, *words = asked.operands or ("",)
    if verb not in ("show", "list"):
        raise Refusal(f"invalid keyword: {verb}")
    entity = next((name for name, spelled in _ENTITIES.items() if words and words[0].lower() in spelled), "")
    if not entity:
        raise Refusal(f"No valid entity in list command\n{_VALID_ENTITIES}")
    fields, conditions, associations = _read(entity, words[1:])
    if entity == "user" and (associations or "associations" in asked):
        entity = "association"
    rows = [row for row in _rows(store, entity) if all(row.get(key) in wanted for key, wanted in conditions.items())]
    titles = [] if "noheader" in asked else [[_TITLES[name] for name in fields]]
    cells = [[row.get(name, "") for name in fields] for row in rows]
    if "parsable" in asked or "parsable2" in asked:
        end = "|" if "parsable" in asked else ""
        lines = ["|".join(row) + end for row in titles + cells]
    else:
        rule = ["---------- " * len(fields)] if titles else []
        lines = [*map(_padded, titles), *rule, *map(_padded, cells)]
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    return 0


def _padded(cells: Iterable[str]) -> str:
    return "".join(f"{cell[:9] + '+' if len(cell) > 10 else cell:>10} " for cell in cells)


def _read(entity: str, words: list[str]) -> tuple[tuple[str, ...], dict[str, list[str]], bool]:
    """The columns, the conditions, and whether a user's associations are asked for."""
    fields = _DEFAULTS[entity]
    conditions: dict[str, list[str]] = {}
    associations = False
    for word in words:
        key, equals, value = word.partition("=")
        key = key.lower()
        if key == "format" and equals:
            fields = tuple(_field(name) for name in value.split(","))
        elif key in ("withassoc", "withassocs"):
            associations = True
        elif key in ("user", "users", "account", "accounts", "cluster", "clusters", "partition", "name") and equals:
            conditions[key.removesuffix("s")] = value.split(",")
        elif not equals and key != "where":
            conditions[entity] = word.split(",")
        elif key != "where":
            raise Refusal(f" Unknown condition: {word}")
    return fields, conditions, associations


def _field(word: str) -> str:
    name = word.partition("%")[0].lower()
    if name not in _TITLES:
        raise Refusal(f"Unknown field '{name}'")
    return name


def _rows(store: Store, entity: str) -> list[Row]:
    account = {"account": facts.ACCOUNT, "description": "simulated", "organization": "demo", "cluster": facts.CLUSTER}
    account |= {"qos": facts.QOS, "share": "1", "fairshare": "1"}
    user = {"user": str(store.settings["user"]), "defaultaccount": facts.ACCOUNT, "adminlevel": "None"}
    if entity == "association":
        return [account, {**account, **user}]
    if entity == "user":
        return [user]
    if entity == "account":
        return [account]
    if entity == "qos":
        return [{"name": facts.QOS, "qos": facts.QOS, "priority": "0"}]
    return [{"cluster": facts.CLUSTER, "controlhost": "127.0.0.1", "controlport": "6817"}]
