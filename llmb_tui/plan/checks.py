"""Problems of a selection: errors, warnings, and notes on unusual layouts."""

from __future__ import annotations

from collections.abc import Iterator
from math import gcd

from llmb_tui.catalog.layout import fills_pipeline, sequence_pieces, shared_heads, stage_places
from llmb_tui.language.quantities import count
from llmb_tui.language.text import capital
from llmb_tui.plan.plan import Problem, error, note, warning
from llmb_tui.plan.resolved import ResolvedSelection, quotient
from llmb_tui.plan.rules import dividing_scales, divisors, either, multiples, neighbours, tensor_reach
from llmb_tui.plan.selection import FIELDS

_LAYOUT = ("tp", "pp", "cp")


def problems_of(resolved: ResolvedSelection) -> Iterator[Problem]:
    """Every problem of the numbers, one for each cause."""
    yield from _unavailable(resolved)
    yield from _scale(resolved)
    yield from _values(resolved)
    yield from _tensor_parallel(resolved)
    yield from _layers(resolved)
    yield from _pipeline(resolved)
    yield from _sequence(resolved)
    yield from _experts(resolved)
    if resolved.overrides:
        yield from unusual_of(resolved)


def _unavailable(resolved: ResolvedSelection) -> Iterator[Problem]:
    """GPU type, precision and scaling that the recipe does not have."""
    selection, base, recipe = resolved.selection, resolved.base, resolved.recipe
    what = f"{recipe.id} {selection.size}"
    tables = [table for table in recipe.tables if table.size == selection.size]
    if selection.gpu != base.gpu:
        gpus = dict.fromkeys(table.gpu.upper() for table in tables)
        yield error("gpu", f"{what} has no configuration for {selection.gpu.upper()}.", f"Choose {either(gpus)}.")
    tables = [table for table in tables if table.gpu == base.gpu]
    if selection.dtype != base.dtype:
        dtypes = dict.fromkeys(dtype for table in tables for dtype in table.dtypes)
        yield error("dtype", f"{what} has no {selection.dtype} on {base.gpu.upper()}.", f"Choose {either(dtypes)}.")
    if selection.strong_scaling != base.strong:
        kind, scaling = ("strong", "weak") if selection.strong_scaling else ("weak", "strong")
        yield error(
            "strong_scaling",
            f"{what} has no {kind} scaling on {base.gpu.upper()}, so its global batch size is unknown.",
            f"Choose {scaling} scaling{_elsewhere(resolved, kind)}.",
        )


def _elsewhere(resolved: ResolvedSelection, scaling: str) -> str:
    """The GPU types that have this scaling, as the end of a sentence."""
    tables = [t for t in resolved.recipe.tables if t.size == resolved.selection.size and t.scaling == scaling]
    return f", or {either(dict.fromkeys(t.gpu.upper() for t in tables))}" if tables else ""


def _scale(resolved: ResolvedSelection) -> Iterator[Problem]:
    """Scales that are not listed, and numbers that do not divide; one problem if the scale causes both."""
    scale, base = resolved.selection.scale, resolved.base
    reasons, fixes, nearest_listed = [], [], neighbours(scale, tuple(base.rows))
    if scale not in base.rows:
        reasons.append(f"{resolved.recipe.id} {resolved.selection.size} lists no configuration for {count(scale)} GPUs")
        fixes.append(f"choose a listed scale: {either(nearest_listed)} GPUs")
    undivided = [(_overridden(resolved, names), reason) for names, reason in _divisions(resolved)]
    for field, reason in undivided:
        if field is None:
            reasons.append(reason)
        else:
            yield error(field, f"{reason}.", _division_fix(resolved, field))
    if any(field is None for field, _ in undivided):
        nearest = dividing_scales(resolved)
        if nearest != nearest_listed or not fixes:
            fixes.append(f"this layout divides {either(nearest)} GPUs" if nearest else "change the layout or the batch")
    if reasons:
        yield error("scale", f"{'; '.join(reasons)}.", f"{capital('; '.join(fixes))}.")
    full = base.full
    if scale < full.gpus and not full.proxy and resolved.parallelism.layers >= resolved.model.layers:
        cut = "; the recipe uses fewer layers there" if any(row.proxy for row in base.rows.values()) else ""
        reason = f"{count(scale)} GPUs are fewer than {count(full.gpus)}, the smallest listed scale of the whole model"
        yield warning("scale", f"{reason}: memory may be insufficient{cut}.", f"Choose {full.gpus} GPUs or more.")


def _divisions(resolved: ResolvedSelection) -> Iterator[tuple[tuple[str, ...], str]]:
    """(fields that may cause it besides the scale, reason) for numbers that do not divide."""
    scale, plan = resolved.selection.scale, resolved.parallelism
    if scale % resolved.gpu.gpus_per_node:
        yield (), f"{count(scale)} GPUs do not fill nodes of {resolved.gpu.gpus_per_node}"
    if plan.dp is None:
        layout = plan.tp * plan.pp * plan.cp
        yield _LAYOUT, f"TP {plan.tp} x PP {plan.pp} x CP {plan.cp} = {layout} does not divide {count(scale)} GPUs"
        return
    if plan.dp % plan.ep:
        yield ("ep", *_LAYOUT), f"EP {plan.ep} does not divide DP {plan.dp}"
    if "gbs" not in resolved.overrides and resolved.base.gbs_for(scale) is None:
        yield (), f"{resolved.base.gbs_rule} samples for each GPU are not a whole batch on {count(scale)} GPUs"
    elif plan.ga is None:
        reason = f"MBS {plan.mbs} x DP {plan.dp} = {plan.mbs * plan.dp} does not divide GBS {plan.gbs}"
        yield ("gbs", "mbs", *_LAYOUT), reason


def _division_fix(resolved: ResolvedSelection, field: str) -> str:
    plan = resolved.parallelism
    if field == "ep":
        return f"Choose EP {_expert_groups(resolved)}."
    if plan.dp and not plan.dp % plan.ep:
        return f"Choose {_batches(resolved, field)}."
    nearest = dividing_scales(resolved)
    return f"Choose another {field.upper()}{f', or {either(nearest)} GPUs' if nearest else ''}."


def _batches(resolved: ResolvedSelection, field: str) -> str:
    """The nearest batch sizes that divide and allow virtual stages; micro-batches first if `field` is MBS."""
    plan = resolved.parallelism
    ranks = (plan.dp or 1) * (plan.pp if plan.vp else 1)
    batches = f"GBS {either(multiples(plan.gbs, plan.mbs * ranks))}"
    most = quotient(plan.gbs, ranks)
    micro = neighbours(plan.mbs, divisors(most)) if most and field == "mbs" else ()
    return f"MBS {either(micro)}, or {batches}" if micro else batches


def _expert_groups(resolved: ResolvedSelection) -> str:
    """The nearest EP that divide the experts, and the data parallel ranks if those are known."""
    ep, experts = resolved.parallelism.ep, resolved.model.experts
    return either(neighbours(ep, divisors(gcd(experts, resolved.parallelism.dp or experts))))


def _values(resolved: ResolvedSelection) -> Iterator[Problem]:
    for name, value in resolved.selection.overrides.set_fields().items():
        if value < FIELDS[name].least:
            reason = f"{name.upper()} is {value} and must be at least {FIELDS[name].least}."
            fix = f"Keep {getattr(resolved.parallelism, name) or 1}, or choose a larger number."
            yield error(name, reason, fix)


def _tensor_parallel(resolved: ResolvedSelection) -> Iterator[Problem]:
    tp, model = resolved.parallelism.tp, resolved.model
    if shared_heads(model) % tp:
        split = f"{model.heads} attention heads" if model.heads % tp else f"{model.query_groups} query groups"
        nearest = either(neighbours(tp, divisors(shared_heads(model))))
        yield error("tp", f"TP {tp} does not divide {split}.", f"Choose TP {nearest}.")


def _layers(resolved: ResolvedSelection) -> Iterator[Problem]:
    plan, model = resolved.parallelism, resolved.model
    places, stages = stage_places(model, plan.layers), plan.pp * (plan.vp or 1)
    if places % stages:
        extra = model.stage_extra_layers
        counted = f"{plan.layers} layers" + (f" and {extra} places for embedding and loss" if extra else "")
        by = f"PP {plan.pp} x VP {plan.vp} = {stages}" if plan.vp else f"PP {plan.pp}"
        field = _overridden(resolved, ("layers", "vp", "pp")) or "layers"
        yield error(field, f"{counted} do not divide by {by}.", _stage_fix(resolved, places, stages))
    if plan.layers > model.layers:
        reason = f"{plan.layers} layers are more than the model's {model.layers}: nothing is published for that."
        yield warning("layers", reason, f"Choose {model.layers} layers.")


def _stage_fix(resolved: ResolvedSelection, places: int, stages: int) -> str:
    """Remedy: another PP, VP or number of layers that divides."""
    plan, extra = resolved.parallelism, resolved.model.stage_extra_layers
    if places % plan.pp:
        change = f"PP {either(neighbours(plan.pp, divisors(places)))}"
    else:
        change = f"VP {either(neighbours(plan.vp or 1, divisors(places // plan.pp)))}"
    layers = [total - extra for total in multiples(places, stages) if total > extra]
    return f"Choose {change}, or {either(layers)} layers."


def _pipeline(resolved: ResolvedSelection) -> Iterator[Problem]:
    plan = resolved.parallelism
    if not plan.vp:
        return
    if plan.pp == 1:
        reason = f"VP {plan.vp} needs a pipeline, and PP is 1."
        yield error(_overridden(resolved, ("vp", "pp")) or "vp", reason, "Choose VP 1, or PP above 1.")
    elif plan.dp and plan.ga and not fills_pipeline(plan.ga, plan.pp):
        reason = f"With virtual stages GA must be a multiple of PP; {plan.ga} is not a multiple of {plan.pp}."
        field = _overridden(resolved, ("gbs", "mbs", *_LAYOUT, "vp")) or "scale"
        yield error(field, reason, f"Choose {_batches(resolved, field)}, or VP 1.")


def _sequence(resolved: ResolvedSelection) -> Iterator[Problem]:
    plan = resolved.parallelism
    pieces = sequence_pieces(plan.tp, plan.cp)
    if plan.seq_len % pieces:
        nearest = either(multiples(plan.seq_len, pieces))
        field = _overridden(resolved, ("seq_len", "cp", "tp")) or "seq_len"
        reason = f"Sequence length {plan.seq_len} does not split into {pieces} pieces (TP {plan.tp}, CP {plan.cp})."
        other = "" if field == "seq_len" else f"another {field.upper()}, or "
        yield error(field, reason, f"Choose {other}sequence length {nearest}.")


def _experts(resolved: ResolvedSelection) -> Iterator[Problem]:
    ep, experts = resolved.parallelism.ep, resolved.model.experts
    if experts % ep:
        has = f"{experts} experts" if experts > 1 else "a model without experts"
        yield error("ep", f"EP {ep} does not divide {has}.", f"Choose EP {_expert_groups(resolved)}.")


def _overridden(resolved: ResolvedSelection, names: tuple[str, ...]) -> str | None:
    """The first of the fields that has an override; the problem is shown there."""
    return next((name for name in names if name in resolved.overrides), None)


_COMPARED = ("pp", "cp", "ep", "vp", "mbs")


def unusual_of(resolved: ResolvedSelection) -> Iterator[Problem]:
    """Differences of a layout from the published ones of the same model, GPU type and precision."""
    runs, node, rows = resolved.parallelism, resolved.gpu.gpus_per_node, resolved.base.rows.values()
    reach = tensor_reach(resolved)
    if runs.tp > reach:
        reason = f"TP {runs.tp} reaches beyond a node of {node} GPUs, where the network is much slower."
        yield warning("tp", reason, f"Choose TP {reach} or less.")
    for name in _COMPARED:
        value = getattr(runs, name) or 1
        most = max(getattr(row, name) or 1 for row in rows)
        if value > most:
            yield note(name, f"{name.upper()} {value} is above the published {most}.")
    if runs.pp == 1 or runs.vp:
        return
    if all(row.vp for row in rows if row.pp > 1) and resolved.base.full.pp > 1:
        yield note("vp", f"PP {runs.pp} has no virtual stages; the published pipelines have them.")
    if runs.ga and runs.ga < runs.pp:
        yield note("pp", f"GA {runs.ga} is less than PP {runs.pp}: some pipeline stages always idle.")
