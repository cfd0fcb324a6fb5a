"""Sizes of recurrent layers, against `cudnnGetRNNTempSpaceSizes` (H200, cuDNN 9.19, torch 2.11+cu130, 2026-11-28)."""

import dataclasses
import gzip
from pathlib import Path

import pytest

from peaksight.gpus import find_card
from peaksight.virtual_gpu.device_rules import rules_for
from peaksight.virtual_gpu.kernels.recurrent_sizes import (
    GRU,
    LSTM,
    PERSIST_SMALL,
    PERSIST_STATIC,
    RELU,
    STANDARD,
    TANH,
    Layers,
    algorithm,
    reserve_bytes,
    workspace_bytes,
)

pytestmark = pytest.mark.torch

# Mode, itemsize, input, hidden and projected size, layers, directions, batch, steps, rows, packed, dropout, algorithm;
# reserve, workspace in training, workspace in inference.
MEASURED = [
    ((RELU, 2, 256, 512, 0, 1, 1, 8, 1000, 8000, False, False, PERSIST_STATIC), 8192256, 123912512, 62456128),
    ((TANH, 2, 64, 1, 0, 1, 1, 64, 10, 640, False, False, STANDARD), 1536, 8639776, 8474400),
    ((TANH, 2, 96, 192, 0, 2, 1, 24, 20, 480, False, False, STANDARD), 553216, 18012608, 17551808),
    ((TANH, 2, 256, 1024, 0, 1, 1, 64, 128, 8192, False, True, PERSIST_STATIC), 16777472, 238289664, 133169920),
    ((TANH, 2, 300, 100, 0, 1, 1, 1, 2, 2, False, False, PERSIST_SMALL), 672, 8478720, 8473408),
    ((TANH, 4, 1, 64, 0, 2, 1, 12, 16, 192, False, False, PERSIST_SMALL), 147712, 17553504, 17147232),
    ((TANH, 4, 80, 200, 0, 1, 2, 16, 256, 4096, False, False, STANDARD), 6553856, 52794240, 44878720),
    ((TANH, 4, 300, 32, 0, 3, 2, 32, 256, 8192, False, False, STANDARD), 10486016, 118009344, 68808192),
    ((TANH, 4, 256, 64, 0, 1, 2, 64, 128, 8192, False, False, PERSIST_SMALL), 4194560, 98960128, 50660096),
    ((TANH, 4, 8, 72, 0, 6, 2, 32, 3, 96, False, False, PERSIST_SMALL), 608512, 102692864, 102219776),
    ((LSTM, 4, 8, 1, 0, 1, 1, 2, 20, 40, False, False, STANDARD), 1056, 8393696, 8391328),
    ((LSTM, 4, 100, 768, 0, 2, 1, 7, 2, 14, False, False, STANDARD), 473344, 46974208, 46968608),
    ((LSTM, 2, 16, 96, 0, 1, 1, 256, 2, 512, True, True, STANDARD), 491776, 9261312, 9261312),
    ((LSTM, 2, 96, 128, 0, 2, 1, 24, 20, 376, True, False, STANDARD), 1059072, 17727744, 17727744),
    ((LSTM, 4, 64, 96, 12, 6, 1, 12, 33, 396, False, True, STANDARD), 6351968, 51921568, 51921568),
    ((LSTM, 4, 3, 200, 100, 4, 1, 128, 10, 1026, True, True, STANDARD), 23851456, 43506688, 43506688),
    ((LSTM, 2, 128, 1024, 0, 1, 1, 48, 33, 1584, False, False, PERSIST_STATIC), 16220416, 87143040, 87143040),
    ((LSTM, 4, 2048, 100, 0, 1, 1, 4, 10, 40, False, True, PERSIST_SMALL), 80256, 13067936, 12518176),
    ((LSTM, 4, 256, 192, 0, 3, 1, 33, 500, 16500, False, True, PERSIST_SMALL), 216216256, 325190176, 325190176),
    ((LSTM, 2, 512, 128, 0, 1, 2, 200, 5, 1000, False, False, STANDARD), 2560256, 27100992, 23926592),
    ((LSTM, 2, 8, 3, 0, 6, 2, 256, 500, 128000, False, False, STANDARD), 53760256, 119339904, 113689472),
    ((LSTM, 2, 96, 64, 0, 1, 2, 24, 4, 84, True, False, STANDARD), 107776, 17119488, 17119488),
    ((LSTM, 2, 8, 256, 0, 3, 2, 5, 50, 200, True, False, STANDARD), 3481856, 59056384, 59056384),
    ((LSTM, 2, 1024, 72, 36, 2, 2, 2, 100, 200, False, False, STANDARD), 806656, 37621664, 35775264),
    ((LSTM, 4, 1, 650, 216, 1, 2, 128, 4, 448, True, True, STANDARD), 14752000, 44046272, 44046272),
    ((LSTM, 2, 8, 3, 0, 1, 2, 7, 500, 3500, False, False, PERSIST_SMALL), 210272, 17493376, 17464960),
    ((LSTM, 4, 3, 32, 0, 6, 2, 4, 8, 32, False, False, PERSIST_SMALL), 286976, 101369888, 101369504),
    ((GRU, 2, 512, 8, 0, 1, 1, 24, 33, 792, False, False, STANDARD), 76288, 10886976, 9277632),
    ((GRU, 4, 256, 512, 0, 2, 1, 64, 5, 320, False, False, STANDARD), 8519936, 32375552, 32047872),
    ((GRU, 2, 8, 512, 0, 1, 1, 200, 20, 3100, True, False, STANDARD), 19046656, 20123904, 20123904),
    ((GRU, 2, 80, 72, 0, 4, 1, 16, 50, 620, True, True, STANDARD), 2432416, 34191744, 34191744),
    ((GRU, 2, 3, 3, 0, 1, 1, 12, 16, 192, False, False, PERSIST_SMALL), 7168, 8412672, 8409024),
    ((GRU, 4, 256, 96, 0, 3, 1, 4, 1000, 4000, False, False, PERSIST_SMALL), 30720256, 65977632, 54704416),
    ((GRU, 2, 3, 512, 0, 1, 2, 64, 128, 8192, False, False, STANDARD), 100663552, 121572096, 121572096),
    ((GRU, 4, 64, 16, 0, 6, 2, 16, 33, 528, False, False, STANDARD), 2771200, 101953920, 101413248),
    ((GRU, 4, 128, 300, 0, 1, 2, 256, 16, 3200, True, False, STANDARD), 46080256, 61331072, 61331072),
    ((GRU, 2, 100, 512, 0, 2, 2, 64, 128, 6176, True, False, STANDARD), 164430080, 111304960, 111304960),
    ((GRU, 2, 16, 3, 0, 1, 2, 4, 4, 16, False, True, PERSIST_SMALL), 1408, 16783616, 16781312),
    ((GRU, 2, 128, 32, 0, 4, 2, 8, 256, 2048, False, False, PERSIST_SMALL), 7078144, 73339200, 70971712),
]


def layers_of(*facts):
    """Layers as a row of `MEASURED` has them."""
    names = [field.name for field in dataclasses.fields(Layers) if field.name != "is_float16"]
    return Layers(**dict(zip(names, facts, strict=True)), is_float16=facts[1] == 2)


@pytest.mark.parametrize(("case", "reserve", "training", "inference"), MEASURED)
def test_what_cudnn_answers(case, reserve, training, inference):
    """Every size, to the byte."""
    *facts, chosen = case
    layers = layers_of(*facts)

    assert reserve == reserve_bytes(layers)
    assert training == workspace_bytes(layers, chosen, is_training=True)
    assert inference == workspace_bytes(layers, chosen, is_training=False)


ANSWERS = Path(__file__).parents[3] / "benchmarks" / "kernels" / "cudnn_rnn_h200_9.19_2026-11-28.txt.gz"
BFLOAT16 = 9
ALGORITHMS = {0: STANDARD, 1: PERSIST_STATIC, 3: PERSIST_SMALL}


def answers():
    """Every question of benchmarks/kernels, with the sizes that cuDNN gave."""
    with gzip.open(ANSWERS, "rt") as file:
        columns = file.readline().split()
        for line in file:
            yield dict(zip(columns, map(int, line.split()), strict=True))


def test_every_answer():
    """A tenth of the 73,468 that came without a choice of arithmetic, to the byte."""
    wrong = 0
    for a in answers():
        layers = Layers(
            mode=a["mode"], itemsize=4 if a["dtype"] == 0 else 2, is_float16=a["dtype"] == 2, input_size=a["input"],
            hidden_size=a["hidden"], proj_size=a["proj"], num_layers=a["layers"], num_directions=a["directions"],
            batch=a["batch"], steps=a["steps"], num_rows=a["rows"], is_packed=bool(a["packed"]),
            drops=bool(a["dropout"]),
        )  # fmt: skip
        chosen = STANDARD if a["dtype"] == BFLOAT16 else ALGORITHMS[a["algorithm"]]
        sizes = (
            reserve_bytes(layers),
            workspace_bytes(layers, chosen, is_training=True),
            workspace_bytes(layers, chosen, is_training=False),
        )
        wrong += sizes != (a["reserve"], a["workspace"], a["workspace_of_inference"])
    assert wrong == 0


@pytest.mark.parametrize(
    ("card", "mode", "itemsize", "hidden", "batch", "chosen"),
    [
        ("h100-80gb", LSTM, 2, 512, 64, (PERSIST_STATIC, PERSIST_STATIC)),
        ("h100-80gb", LSTM, 4, 512, 64, (STANDARD, STANDARD)),
        ("h100-80gb", LSTM, 2, 512, 63, (STANDARD, STANDARD)),
        ("h100-80gb", LSTM, 4, 160, 64, (PERSIST_SMALL, STANDARD)),
        ("h100-80gb", GRU, 2, 512, 64, (STANDARD, STANDARD)),
        ("h100-80gb", GRU, 2, 128, 64, (PERSIST_SMALL, PERSIST_SMALL)),
        ("h100-80gb", TANH, 4, 384, 64, (PERSIST_SMALL, STANDARD)),
        ("h100-80gb", RELU, 2, 896, 96, (STANDARD, STANDARD)),
        ("a6000", LSTM, 2, 512, 64, (STANDARD, STANDARD)),
    ],
)
def test_algorithm(card, mode, itemsize, hidden, batch, chosen):
    """Of forward and of backward: persistent where a layer is small, or one layer in half precision on a big card."""
    rules = rules_for("2.11+cu130", find_card(card))
    layers = layers_of(mode, itemsize, 256, hidden, 0, 1, 1, batch, 20, 20 * batch, False, False)

    assert chosen == tuple(algorithm(layers, rules, is_forward=is_forward) for is_forward in (True, False))


def test_algorithm_of_packed_and_projected_layers():
    """Only the standard one takes them."""
    rules = rules_for("2.11+cu130", find_card("h100-80gb"))
    small = layers_of(LSTM, 4, 64, 64, 0, 1, 1, 16, 20, 320, False, False)
    others = [dataclasses.replace(small, is_packed=True), dataclasses.replace(small, proj_size=32)]

    assert PERSIST_SMALL == algorithm(small, rules, is_forward=True)
    assert {STANDARD} == {algorithm(layers, rules, is_forward=True) for layers in others}
