"""The fast paths of nn.MultiheadAttention and nn.TransformerEncoder, which evaluation without gradients takes.

Each is one operator for Python and these steps for the card: `native_multi_head_attention_cuda` of ATen/native/
transformers/cuda/attention.cu and `transformer_encoder_layer_forward` of ATen/native/transformers/transformer.cpp.
They take what an H200 took (torch 2.11+cu130, 2026-11-28, benchmarks/operators, "layer transformers").

Limitations:
    With a padding mask nn.TransformerEncoder makes a nested tensor of the words that are not masked. Here they are
    one sequence: without a matrix of scores, its attention takes the same but for statistics and offsets.
"""

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import torch
import torch.nn.functional as F

from peaksight.overlays.patches import Patches
from peaksight.virtual_gpu.device_rules import DeviceRules
from peaksight.virtual_gpu.kernels.sdpa import backend_for
from peaksight.virtual_gpu.kernels.sdpa_choice import Backend
from peaksight.virtual_gpu.tensors.device_requests import DeviceRequests
from peaksight.virtual_gpu.tensors.known import known_value
from peaksight.virtual_gpu.torch_private import function_mode_stack, function_modes_off

aten = torch.ops.aten


def install(patches: Patches) -> None:
    """Modules ask whether something overrides torch: the function mode of the virtual GPU is none of the script's."""
    overridden = torch.overrides.has_torch_function

    def has_torch_function(relevant_args: Any) -> bool:
        is_scripts = not all(isinstance(mode, DeviceRequests) for mode in function_mode_stack())
        with nullcontext() if is_scripts else function_modes_off():
            return overridden(relevant_args)

    patches.set(torch.overrides, "has_torch_function", has_torch_function)


def transformer_rules(rules: DeviceRules, note: Callable[[str], None]) -> dict[Any, Callable[..., Any]]:
    """The steps of each operator; `note(slug)` is told what is only approximated."""
    return {
        aten._native_multi_head_attention.default: _multi_head_attention(rules),
        aten._transformer_encoder_layer_fwd.default: _encoder_layer,
        aten._nested_tensor_from_mask.default: _packed(note),
        aten.to_padded_tensor.default: _padded,
    }


def _multi_head_attention(rules: DeviceRules) -> Callable[..., Any]:
    def steps(
        query: Any, key: Any, value: Any, embed_dim: int, num_head: int, qkv_weight: Any, qkv_bias: Any,
        proj_weight: Any, proj_bias: Any, mask: Any = None, need_weights: bool = True,
        average_attn_weights: bool = True, mask_type: int | None = None,
    ) -> tuple[Any, Any]:  # fmt: skip
        if query is key and key is value and mask is None and not need_weights:
            heads = _heads(query, num_head)
            if backend_for(rules, heads, heads, heads) is not Backend.MATH:
                return _fused(query, num_head, qkv_weight, qkv_bias, proj_weight, proj_bias), None
        heads = _biased(_projected(query, key, value, qkv_weight), num_head)
        weights = _softmax(torch.matmul(heads[0], heads[1].transpose(-2, -1)), mask, mask_type)
        attended = _into(heads[0], weights, heads[2])  # the query is not needed any more
        if not need_weights:
            del weights
        out = F.linear(attended.transpose(1, 2).flatten(-2), proj_weight, proj_bias)
        if not need_weights:
            return out, None
        return out, weights.sum(1).div_(num_head) if average_attn_weights else weights

    return steps


def _heads(tensor: Any, num_head: int) -> Any:
    return tensor.unflatten(-1, (num_head, -1)).transpose(1, 2)


def _fused(query: Any, num_head: int, qkv_weight: Any, qkv_bias: Any, proj_weight: Any, proj_bias: Any) -> Any:
    heads = [_heads(part, num_head) for part in F.linear(query, qkv_weight, qkv_bias).chunk(3, -1)]
    return F.linear(F.scaled_dot_product_attention(*heads).transpose(1, 2).flatten(-2), proj_weight, proj_bias)


def _projected(query: Any, key: Any, value: Any, weight: Any) -> Any:
    """Query, key and value beside each other: one product where they are the same, two or three otherwise."""
    if query is key and key is value:
        return F.linear(query, weight)
    width = weight.shape[1]
    if key is value:
        return torch.cat([F.linear(query, weight[:width]), F.linear(key, weight[width:])], 2)
    return torch.cat([F.linear(t, part) for t, part in zip((query, key, value), weight.chunk(3), strict=True)], 2)


def _biased(projected: Any, num_head: int) -> Any:
    """`_transform_bias_rescale_qkv`: query, key and value by heads, in one block."""
    batch, length, width = projected.shape
    return projected.new_empty(3, batch, num_head, length, width // 3 // num_head)


def _softmax(scores: Any, mask: Any, mask_type: int | None) -> Any:
    """In place, but for a mask."""
    if mask is None:
        return scores
    mask = aten.to.dtype(mask, torch.bool)
    return aten._masked_softmax.default(scores, mask, -1, mask_type)


def _into(out: Any, weights: Any, value: Any) -> Any:
    torch.bmm(weights.flatten(0, 1), value.flatten(0, 1), out=out.flatten(0, 1))
    return out


def _encoder_layer(
    src: Any, embed_dim: int, num_heads: int, qkv_weight: Any, qkv_bias: Any, proj_weight: Any, proj_bias: Any,
    use_gelu: bool, norm_first: bool, eps: float, norm_weight_1: Any, norm_bias_1: Any, norm_weight_2: Any,
    norm_bias_2: Any, ffn_weight_1: Any, ffn_bias_1: Any, ffn_weight_2: Any, ffn_bias_2: Any, mask: Any = None,
    mask_type: int | None = None,
) -> Any:  # fmt: skip
    def attend(x: Any) -> Any:
        weights = (qkv_weight, qkv_bias, proj_weight, proj_bias)
        return aten._native_multi_head_attention.default(
            x, x, x, embed_dim, num_heads, *weights, mask, False, True, mask_type
        )[0]

    def feed_forward(x: Any) -> Any:
        words = x.flatten(0, 1)
        activate = aten._addmm_activation.default
        out = F.linear(activate(ffn_bias_1, words, ffn_weight_1.t(), use_gelu=use_gelu), ffn_weight_2, ffn_bias_2)
        return out.view(x.shape)

    def first_norm(x: Any) -> Any:
        return F.layer_norm(x, (embed_dim,), norm_weight_1, norm_bias_1, eps)

    def second_norm(x: Any) -> Any:
        return F.layer_norm(x, (embed_dim,), norm_weight_2, norm_bias_2, eps)

    if norm_first:
        x = attend(first_norm(src)).add_(src)
        return feed_forward(second_norm(x)).add_(x)
    x = first_norm(attend(src).add_(src))
    return second_norm(feed_forward(x).add_(x))


def _packed(note: Callable[[str], None]) -> Callable[..., Any]:
    """The words that `mask` keeps, all of them where it is unknown which."""

    def steps(t: Any, mask: Any, mask_check: bool = True) -> Any:
        note("nested-tensors")
        kept = known_value(mask)
        lengths = [mask.shape[1]] * mask.shape[0] if kept is None else kept.sum(1).tolist()
        pack = _by_kernel if t.dtype in (torch.float32, torch.float16) else _by_selecting
        return pack(t, lengths)

    return steps


def _by_kernel(t: Any, lengths: list[int]) -> Any:
    return t.new_empty(1, sum(lengths), t.shape[2])


def _by_selecting(t: Any, lengths: list[int]) -> Any:
    """`nested_from_padded_generic`: a mask of every element, and an index of the three dimensions of those it keeps."""
    _, length, width = t.shape
    masks = [F.pad(t.new_ones(kept, width, dtype=torch.bool), (0, 0, 0, length - kept)) for kept in lengths]
    stacked = torch.stack(masks)
    index = t.new_empty(t.dim(), sum(lengths) * width, dtype=torch.int64)
    words = _by_kernel(t, lengths)
    del index, stacked
    return words


def _padded(self: Any, padding: float, output_size: Any = None) -> Any:
    return self.new_empty(output_size)
