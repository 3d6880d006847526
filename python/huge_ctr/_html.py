"""Draws trainers and models in notebooks: the graph, and the curves."""

from __future__ import annotations

import html
from dataclasses import dataclass
from typing import Any, Mapping, Sequence

import numpy as np

_WIDTH, _HEIGHT, _LEFT, _BOTTOM = 290, 160, 46, 22  # this width puts three drawings side by side in a notebook
_COLORS = ("#2a6fdb", "#d9542b", "#2f9e58", "#8a4fc4")


def trainer_page(trainer: Any) -> str:
    state = trainer.state
    parts = [f"<b>huge_ctr.Trainer</b>, iteration {state.iteration}, {html.escape(trainer.device)}"]
    parts.append(curves(trainer.history))
    parts.append(graph(trainer._plain))
    return "<div>" + "".join(parts) + "</div>"


def model_page(model: Any) -> str:
    parts = [f"<b>huge_ctr.Model</b>: {html.escape(model.title)}, on {html.escape(model.device_name)}"]
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
    """Draws the loss, and each metric in a separate drawing."""
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


_SHORT = {
    "BinaryCrossEntropyLoss": "BCE loss",
    "CrossEntropyLoss": "CE loss",
    "MultiCrossEntropyLoss": "multi BCE loss",
    "DistributedSlotSparseEmbeddingHash": "Embedding",
    "LocalizedSlotSparseEmbeddingHash": "Embedding",
    "LocalizedSlotSparseEmbeddingOneHot": "Embedding",
    "HybridSparseEmbedding": "Embedding",
    "ElementwiseMultiply": "Multiply",
    "FusedReshapeConcat": "ReshapeConcat",
    "FusedInnerProduct": "InnerProduct",
    "MultiHeadAttention": "Attention",
}
_BOX, _COLUMN, _ROW, _TALL = 104, 128, 50, 30


@dataclass
class _Node:
    kind: str
    tops: list[str]
    bottoms: list[str]
    level: int = 0
    column: int = 0

    @property
    def label(self) -> str:
        return self.tops[0] if self.kind == "Data" else _SHORT.get(self.kind, self.kind)[:16]


def _nodes(layers: Sequence[Mapping]) -> list[_Node]:
    """Returns the nodes of the graph: inputs that layers read, and layers. The level of a node is one above its highest
    reader in the drawing; nodes without readers are at the bottom.
    """
    data = layers[0]
    inputs = [data.get(part, {}).get("top", part) for part in ("dense", "label", "sample_weight")]
    inputs += [str(one["top"]) for one in data.get("sparse") or []]
    nodes = [_Node("Data", [top], []) for top in inputs]
    nodes += [
        _Node(_names(layer.get("type"))[0], _names(layer.get("top")), _names(layer.get("bottom")))
        for layer in layers[1:]
    ]
    read = {bottom for node in nodes for bottom in node.bottoms}
    nodes = [node for node in nodes if node.kind != "Data" or node.tops[0] in read]
    readers: dict[str, list[_Node]] = {}
    for node in nodes:
        for bottom in node.bottoms:
            readers.setdefault(bottom, []).append(node)
    for _ in nodes:  # after n passes the levels are final, where n is the number of nodes on the longest path
        moved = False
        for node in reversed(nodes):
            behind = [one.level for top in node.tops for one in readers.get(top, [])]
            level = min(behind) - 1 if behind else 0
            moved = moved or level != node.level
            node.level = level
        if not moved:
            break
    return nodes


def graph(config: Mapping[str, Any]) -> str:
    """Draws the layers from the data at the top to the losses at the bottom, because models are deeper than wide."""
    layers = config.get("layers") or []
    if not layers or not all(isinstance(layer, Mapping) for layer in layers):
        return ""
    nodes = _nodes(layers)
    first = min(node.level for node in nodes)
    columns: dict[int, int] = {}
    places: dict[str, _Node] = {}
    for node in nodes:
        node.level -= first
        node.column = columns.get(node.level, 0)
        columns[node.level] = node.column + 1
        places.update({top: node for top in node.tops})
    drawn = [_line(places[bottom], node) for node in nodes for bottom in node.bottoms if bottom in places]
    drawn += [_box(node) for node in nodes]
    width, height = 8 + _COLUMN * max(columns.values()), 8 + _ROW * max(columns) + _TALL
    return (
        f"<div style='overflow-x:auto'><svg width='{width}' height='{height}' role='img' aria-label='layers'>"
        f"{''.join(drawn)}</svg></div>"
    )


def _box(node: _Node) -> str:
    x, y = 4 + _COLUMN * node.column, 4 + _ROW * node.level
    color = "#e8eefb" if node.kind == "Data" else "#fbeee8" if node.label == "Embedding" else "#f3f3f3"
    return (
        f"<g><title>{html.escape(node.kind + ': ' + ', '.join(node.tops))}</title>"
        f"<rect x='{x}' y='{y}' width='{_BOX}' height='{_TALL}' rx='4' fill='{color}' stroke='#888'/>"
        f"<text x='{x + _BOX // 2}' y='{y + 19}' text-anchor='middle' style='font:11px sans-serif;fill:#222'>"
        f"{html.escape(node.label)}</text></g>"
    )


def _line(below: _Node, node: _Node) -> str:
    """Draws an edge between two boxes. A long edge runs in the gap between two columns of boxes."""
    from_x, from_y = 4 + _COLUMN * below.column + _BOX // 2, 4 + _ROW * below.level + _TALL
    x, y = 4 + _COLUMN * node.column + _BOX // 2, 4 + _ROW * node.level
    if node.level == below.level + 1:
        way = f"C{from_x} {from_y + 12} {x} {y - 12} {x} {y}"
    else:
        gap = from_x + _COLUMN // 2
        aside = f"C{from_x} {from_y + 14} {gap} {from_y + 6} {gap} {from_y + 20}"
        way = f"{aside}V{y - 20}C{gap} {y - 6} {x} {y - 14} {x} {y}"
    return f"<path d='M{from_x} {from_y}{way}' fill='none' stroke='#aaa'/>"
