"""Pictures of trainers and models for notebooks: the graph, and the curves."""

from __future__ import annotations

import html
from typing import Any, Mapping, Sequence

import numpy as np

_WIDTH, _HEIGHT, _LEFT, _BOTTOM = 360, 160, 46, 22
_COLORS = ("#2a6fdb", "#d9542b", "#2f9e58", "#8a4fc4")


def trainer_page(trainer: Any) -> str:
    state = trainer.state
    parts = [f"<b>huge_ctr.Trainer</b>, iteration {state.iteration}, {html.escape(trainer.device)}"]
    parts.append(curves(trainer.history))
    parts.append(graph(trainer._plain))
    return "<div>" + "".join(parts) + "</div>"


def model_page(model: Any) -> str:
    parts = [f"<b>huge_ctr.Model</b>: {html.escape(model.name)}, on {html.escape(model.device_name)}"]
    if model.history is not None:
        parts.append(curves(model.history))
    parts.append(graph(model.config))
    tables = "".join(
        f"<tr><td>{html.escape(name)}</td><td>{len(table)}</td><td>{table.dim}</td></tr>"
        for name, table in model.tables.items()
    )
    if tables:
        parts.append(f"<table><tr><th>table</th><th>rows</th><th>dim</th></tr>{tables}</table>")
    return "<div>" + "".join(parts) + "</div>"


def curves(history: Any) -> str:
    """A drawing of the loss, and one of each metric."""
    loss = [(at.iteration, at.mean_loss) for at in history.displays if at.mean_loss == at.mean_loss]
    drawn = [curve("training loss", loss, _COLORS[0])] if len(loss) > 1 else []
    names = history.evaluations[-1].metrics if history.evaluations else {}
    for number, name in enumerate(names):
        points = [(at.iteration, at.metrics[name]) for at in history.evaluations if at.metrics.get(name) is not None]
        points = [(x, y) for x, y in points if y == y]
        if len(points) > 1:
            drawn.append(curve(name, points, _COLORS[(number + 1) % len(_COLORS)]))
    return f"<div style='display:flex;flex-wrap:wrap'>{''.join(drawn)}</div>" if drawn else ""


def curve(title: str, points: Sequence[tuple[float, float]], color: str) -> str:
    xs, ys = [x for x, _ in points], [y for _, y in points]
    low, high = min(ys), max(ys)
    high = high if high > low else low + 1e-6
    right = max(xs) if max(xs) > min(xs) else min(xs) + 1

    def place(x: float, y: float) -> str:
        across = _LEFT + (x - min(xs)) / (right - min(xs)) * (_WIDTH - _LEFT - 12)
        down = 24 + (high - y) / (high - low) * (_HEIGHT - 24 - _BOTTOM)
        return f"{across:.1f},{down:.1f}"

    line = " ".join(place(x, y) for x, y in points)
    floor = _HEIGHT - _BOTTOM
    text = "style='font:11px sans-serif;fill:currentColor'"
    return (
        f"<svg width='{_WIDTH}' height='{_HEIGHT}' role='img' aria-label='{html.escape(title)}'>"
        f"<text x='{_LEFT}' y='14' {text}>{html.escape(title)}: {ys[-1]:.4f}</text>"
        f"<path d='M{_LEFT} 24V{floor}H{_WIDTH - 12}' fill='none' stroke='#999'/>"
        f"<text x='{_LEFT - 4}' y='32' text-anchor='end' {text}>{high:.3f}</text>"
        f"<text x='{_LEFT - 4}' y='{floor}' text-anchor='end' {text}>{low:.3f}</text>"
        f"<text x='{_LEFT}' y='{_HEIGHT - 6}' {text}>{min(xs)}</text>"
        f"<text x='{_WIDTH - 12}' y='{_HEIGHT - 6}' text-anchor='end' {text}>iteration {max(xs)}</text>"
        f"<polyline points='{line}' fill='none' stroke='{color}' stroke-width='1.8'/></svg>"
    )


def _names(value: Any) -> list[str]:
    return [str(one) for one in np.ravel(value).tolist()] if value is not None else []


def _depths(layers: Sequence[Mapping]) -> dict[str, int]:
    """Of each top, how many layers lie below it at most."""
    depths: dict[str, int] = {}
    for _ in range(len(layers)):
        before = dict(depths)
        for layer in layers[1:]:
            depth = 1 + max((depths.get(one, 0) for one in _names(layer.get("bottom"))), default=0)
            depths.update({top: depth for top in _names(layer.get("top"))})
        if depths == before:
            break
    return depths


def graph(config: Mapping[str, Any]) -> str:
    """The layers from the data on the left to the losses on the right."""
    layers = config.get("layers") or []
    if not layers or not all(isinstance(layer, Mapping) for layer in layers):
        return ""
    depths, places, boxes, lines, rows = _depths(layers), {}, [], [], {}
    data = layers[0]
    inputs = [data.get(part, {}).get("top", part) for part in ("dense", "label")]
    if not data.get("dense", {}).get("dense_dim"):
        inputs.remove(data.get("dense", {}).get("top", "dense"))
    inputs += [str(one["top"]) for one in data.get("sparse") or []]
    nodes = [("Data", [top], [], 0) for top in inputs]
    nodes += [
        (
            _names(layer.get("type"))[0],
            _names(layer.get("top")),
            _names(layer.get("bottom")),
            depths[_names(layer["top"])[0]],
        )
        for layer in layers[1:]
    ]
    for kind, tops, bottoms, depth in nodes:
        x, y = 4 + 118 * depth, 4 + 44 * rows.get(depth, 0)
        rows[depth] = rows.get(depth, 0) + 1
        places.update({top: (x, y) for top in tops})
        shown = tops[0] if kind == "Data" else kind.replace("DistributedSlotSparseEmbeddingHash", "Embedding")
        color = "#e8eefb" if kind == "Data" else "#fbeee8" if "Embedding" in shown else "#f3f3f3"
        boxes.append(
            f"<g><title>{html.escape(kind + ': ' + ', '.join(tops))}</title>"
            f"<rect x='{x}' y='{y}' width='100' height='30' rx='4' fill='{color}' stroke='#888'/>"
            f"<text x='{x + 50}' y='{y + 19}' text-anchor='middle' style='font:11px sans-serif;fill:#222'>"
            f"{html.escape(shown[:16])}</text></g>"
        )
        for bottom in bottoms:
            if bottom in places:
                from_x, from_y = places[bottom][0] + 100, places[bottom][1] + 15
                lines.append(
                    f"<path d='M{from_x} {from_y}C{from_x + 9} {from_y} {x - 9} {y + 15} {x} {y + 15}' "
                    f"fill='none' stroke='#aaa'/>"
                )
    width, height = 4 + 118 * (max(rows) + 1), 8 + 44 * max(rows.values())
    return (
        f"<div style='overflow-x:auto'><svg width='{width}' height='{height}' role='img' aria-label='layers'>"
        f"{''.join(lines)}{''.join(boxes)}</svg></div>"
    )
