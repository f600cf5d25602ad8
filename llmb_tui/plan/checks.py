"""Why a draft cannot or should not run: problems of severity `error` and `warning`."""

from __future__ import annotations

from collections.abc import Iterator

from llmb_tui.plan.draft import Draft
from llmb_tui.plan.nearest import dividing_scales, divisors, either, multiples, neighbours
from llmb_tui.plan.plan import Problem
from llmb_tui.plan.rules import fills_pipeline, sequence_pieces, shared_heads, stage_places
from llmb_tui.plan.unusual import unusual_of

_LAYOUT = ("tp", "pp", "cp")


def problems_of(draft: Draft) -> Iterator[Problem]:
    """Every problem of the numbers, each cause once."""
    yield from _offer(draft)
    yield from _scale(draft)
    yield from _values(draft)
    yield from _tensor_parallel(draft)
    yield from _layers(draft)
    yield from _pipeline(draft)
    yield from _sequence(draft)
    yield from _experts(draft)
    if draft.own:
        yield from unusual_of(draft)


def _offer(draft: Draft) -> Iterator[Problem]:
    """What the recipe does not have."""
    asked, base, recipe = draft.selection, draft.base, draft.recipe
    what = f"{recipe.id} {asked.size}"
    tables = [table for table in recipe.tables if table.size == asked.size]
    if asked.gpu != base.gpu:
        gpus = dict.fromkeys(table.gpu.upper() for table in tables)
        yield _error("gpu", f"{what} has no configuration for {asked.gpu.upper()}.", f"Choose {either(gpus)}.")
    tables = [table for table in tables if table.gpu == base.gpu]
    if asked.dtype != base.dtype:
        dtypes = dict.fromkeys(dtype for table in tables for dtype in table.dtypes)
        yield _error("dtype", f"{what} has no {asked.dtype} on {base.gpu.upper()}.", f"Choose {either(dtypes)}.")
    if asked.strong_scaling != base.strong:
        kind, other = ("strong", "weak") if asked.strong_scaling else ("weak", "strong")
        yield _error(
            "strong_scaling",
            f"{what} has no {kind} scaling on {base.gpu.upper()}, so no global batch is known for it.",
            f"Choose {other} scaling{_elsewhere(draft, kind)}.",
        )


def _elsewhere(draft: Draft, scaling: str) -> str:
    """The GPU types that have that scaling, as the end of a sentence."""
    tables = [t for t in draft.recipe.tables if t.size == draft.selection.size and t.scaling == scaling]
    return f", or {either(dict.fromkeys(t.gpu.upper() for t in tables))}" if tables else ""


def _scale(draft: Draft) -> Iterator[Problem]:
    """Scales that are not listed and numbers that do not divide, as one problem where the scale is to blame."""
    scale, base = draft.selection.scale, draft.base
    reasons, fixes, listed = [], [], neighbours(scale, tuple(base.rows))
    if scale not in base.rows:
        reasons.append(f"{draft.recipe.id} {draft.selection.size} lists no configuration for {scale} GPUs")
        fixes.append(f"choose a listed scale: {either(listed)} GPUs")
    undivided = [(_set_by_hand(draft, names), reason) for names, reason in _divisions(draft)]
    for field, reason in undivided:
        if field is None:
            reasons.append(reason)
        else:
            yield _error(field, f"{reason}.", _division_fix(draft, field))
    if any(field is None for field, _ in undivided):
        nearest = dividing_scales(draft)
        if nearest != listed or not fixes:
            fixes.append(f"this layout divides {either(nearest)} GPUs" if nearest else "change the layout or the batch")
    if reasons:
        yield _error("scale", f"{'; '.join(reasons)}.", f"{_capital('; '.join(fixes))}.")
    full = base.full
    if scale < full.gpus and not full.proxy and draft.parallelism.layers >= draft.model.layers:
        cut = "; the recipe cuts layers there" if any(row.proxy for row in base.rows.values()) else ""
        reason = f"{scale} GPUs are fewer than {full.gpus}, the smallest listed scale of the whole model"
        yield _warning("scale", f"{reason}: memory may not suffice{cut}.", f"Choose {full.gpus} GPUs or more.")


def _divisions(draft: Draft) -> Iterator[tuple[tuple[str, ...], str]]:
    """What does not divide: the fields that could be to blame beside the scale, and why."""
    scale, plan = draft.selection.scale, draft.parallelism
    if scale % draft.gpu.gpus_per_node:
        yield (), f"{scale} GPUs do not fill nodes of {draft.gpu.gpus_per_node}"
    if plan.dp is None:
        layout = plan.tp * plan.pp * plan.cp
        yield _LAYOUT, f"TP {plan.tp} x PP {plan.pp} x CP {plan.cp} = {layout} does not divide {scale} GPUs"
        return
    if plan.dp % plan.ep:
        yield ("ep", *_LAYOUT), f"EP {plan.ep} does not divide DP {plan.dp}"
    if "gbs" not in draft.own and draft.base.gbs_for(scale) is None:
        yield (), f"{draft.base.gbs_rule} samples for each GPU are no whole batch on {scale} GPUs"
    elif plan.ga is None:
        reason = f"MBS {plan.mbs} x DP {plan.dp} = {plan.mbs * plan.dp} does not divide GBS {plan.gbs}"
        yield ("gbs", "mbs", *_LAYOUT), reason


def _division_fix(draft: Draft, field: str) -> str:
    plan = draft.parallelism
    if field == "ep" and plan.dp:
        return f"Choose EP {either(neighbours(plan.ep, divisors(plan.dp)))}."
    if plan.dp and not plan.dp % plan.ep:
        return f"Choose GBS {either(multiples(plan.gbs, plan.mbs * plan.dp))}."
    nearest = dividing_scales(draft)
    return f"Choose another {field.upper()}{f', or {either(nearest)} GPUs' if nearest else ''}."


def _values(draft: Draft) -> Iterator[Problem]:
    for name, value in draft.selection.overrides.given().items():
        if value < 1:
            reason = f"{name.upper()} must be at least 1, and is {value}."
            yield _error(name, reason, f"Leave it at {getattr(draft.parallelism, name) or 1}, or choose a larger one.")


def _tensor_parallel(draft: Draft) -> Iterator[Problem]:
    tp, model = draft.parallelism.tp, draft.model
    if shared_heads(model) % tp:
        split = f"{model.heads} attention heads" if model.heads % tp else f"{model.query_groups} query groups"
        nearest = either(neighbours(tp, divisors(shared_heads(model))))
        yield _error("tp", f"TP {tp} does not divide {split}.", f"Choose TP {nearest}.")


def _layers(draft: Draft) -> Iterator[Problem]:
    plan, model = draft.parallelism, draft.model
    places, stages = stage_places(model, plan.layers), plan.pp * (plan.vp or 1)
    if places % stages:
        extra = model.stage_extra_layers
        counted = f"{plan.layers} layers" + (f" and {extra} places for embedding and loss" if extra else "")
        by = f"PP {plan.pp} x VP {plan.vp} = {stages}" if plan.vp else f"PP {plan.pp}"
        field = _set_by_hand(draft, ("layers", "vp", "pp")) or "layers"
        yield _error(field, f"{counted} do not divide by {by}.", _stage_fix(draft, places, stages))
    if plan.layers > model.layers:
        reason = f"{plan.layers} layers are more than the model's {model.layers}: nothing is published for that."
        yield _warning("layers", reason, f"Choose {model.layers} layers.")


def _stage_fix(draft: Draft, places: int, stages: int) -> str:
    """Another PP or VP that divides, or as many layers as do."""
    plan, extra = draft.parallelism, draft.model.stage_extra_layers
    if places % plan.pp:
        other = f"PP {either(neighbours(plan.pp, divisors(places)))}"
    else:
        other = f"VP {either(neighbours(plan.vp or 1, divisors(places // plan.pp)))}"
    layers = [total - extra for total in multiples(places, stages) if total > extra]
    return f"Choose {other}, or {either(layers)} layers."


def _pipeline(draft: Draft) -> Iterator[Problem]:
    plan = draft.parallelism
    if not plan.vp:
        return
    if plan.pp == 1:
        reason = f"VP {plan.vp} needs a pipeline, and PP is 1."
        yield _error(_set_by_hand(draft, ("vp", "pp")) or "vp", reason, "Choose VP 1, or PP above 1.")
    elif plan.dp and plan.ga and not fills_pipeline(plan.ga, plan.pp):
        reason = f"With virtual stages GA must be a multiple of PP, and {plan.ga} is none of {plan.pp}."
        field = _set_by_hand(draft, ("gbs", "mbs", *_LAYOUT, "vp")) or "scale"
        nearest = either(multiples(plan.gbs, plan.mbs * plan.dp * plan.pp))
        yield _error(field, reason, f"Choose GBS {nearest}, or VP 1.")


def _sequence(draft: Draft) -> Iterator[Problem]:
    plan = draft.parallelism
    pieces = sequence_pieces(plan.tp, plan.cp)
    if plan.seq_len % pieces:
        nearest = either(multiples(plan.seq_len, pieces))
        field = _set_by_hand(draft, ("seq_len", "cp", "tp")) or "seq_len"
        reason = f"Sequence length {plan.seq_len} does not split into {pieces} pieces (TP {plan.tp}, CP {plan.cp})."
        other = "" if field == "seq_len" else f"another {field.upper()}, or "
        yield _error(field, reason, f"Choose {other}sequence length {nearest}.")


def _experts(draft: Draft) -> Iterator[Problem]:
    ep, experts = draft.parallelism.ep, draft.model.experts
    if experts % ep:
        has = f"{experts} experts" if experts > 1 else "a model without experts"
        yield _error("ep", f"EP {ep} does not divide {has}.", f"Choose EP {either(neighbours(ep, divisors(experts)))}.")


def _set_by_hand(draft: Draft, names: tuple[str, ...]) -> str | None:
    """The first of the fields that a person has set, which is where the problem is shown."""
    return next((name for name in names if name in draft.own), None)


def _capital(text: str) -> str:
    return text[0].upper() + text[1:]


def _error(field: str, reason: str, fix: str) -> Problem:
    return Problem(field, "error", reason, fix)


def _warning(field: str, reason: str, fix: str) -> Problem:
    return Problem(field, "warning", reason, fix)
