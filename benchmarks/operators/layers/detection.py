"""Operators of torchvision."""

from collections.abc import Iterator

import torch

from benchmarks.operators.layers.making import FLOATS, Variant, of, randn, short


def detection() -> Iterator[Variant]:
    """Boxes, regions of interest and deformable convolutions; nothing where torchvision is not installed."""
    try:
        from torchvision import ops
    except ImportError:
        return
    for count in (100, 1000, 5000):
        scores = lambda: randn(count, grad=False)
        yield of(f"nms {count}", lambda b, s: ops.nms(b, s, 0.5), lambda: _boxes(count), scores)
        yield of(
            f"batched_nms {count}", lambda b, s: ops.batched_nms(b, s, s.long(), 0.5), lambda: _boxes(count), scores
        )
        yield of(f"box_iou {count}", lambda b: ops.box_iou(b, b[:50]), lambda: _boxes(count))
    for dtype in FLOATS:
        image = lambda: randn(2, 64, 100, 100, dtype=dtype)
        boxes = lambda: [_boxes(200).to(dtype), _boxes(200).to(dtype)]
        flags = short(dtype)
        yield of(f"roi_align {flags}", lambda x, b: ops.roi_align(x, b, 7, 0.25, 2), image, boxes)
        yield of(f"roi_align aligned {flags}", lambda x, b: ops.roi_align(x, b, 14, 0.25, -1, True), image, boxes)
        yield of(f"roi_pool {flags}", lambda x, b: ops.roi_pool(x, b, 7, 0.25), image, boxes)
        yield of(f"ps_roi_align {flags}", lambda x, b: ops.ps_roi_align(x, b, 4, 0.25, 2), image, boxes)
        yield of(f"deform_conv2d {flags}", lambda x, o, w: ops.deform_conv2d(x, o, w, padding=1), image,
                 lambda: randn(2, 18, 100, 100, dtype=dtype), lambda: randn(32, 64, 3, 3, dtype=dtype))  # fmt: skip
    yield of("sigmoid_focal_loss", lambda x: ops.sigmoid_focal_loss(x, torch.zeros_like(x)), lambda: randn(500, 90))
    yield of("stochastic_depth", lambda x: ops.stochastic_depth(x, 0.2, "row"), lambda: randn(64, 100))


def _boxes(count: int) -> torch.Tensor:
    corners = torch.rand(count, 2, generator=torch.Generator().manual_seed(0)) * 300
    return torch.cat([corners, corners + 50], 1).cuda()
