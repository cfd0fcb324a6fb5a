"""Forecasts of series: transformers' Autoformer (correlations by FFT, chosen delays), then Informer, both by likelihood."""

import torch
from transformers import AutoformerConfig, AutoformerForPrediction, InformerConfig, InformerForPrediction

BATCH, PAST, FUTURE, FEATURES = 32, 192, 96, 4
torch.manual_seed(0)
SHAPE = {
    "prediction_length": FUTURE, "context_length": PAST - 7, "input_size": 7, "lags_sequence": [1, 2, 3, 7], "num_time_features": FEATURES,
    "d_model": 512, "encoder_layers": 3, "decoder_layers": 2, "encoder_attention_heads": 8, "decoder_attention_heads": 8,
    "encoder_ffn_dim": 2048, "decoder_ffn_dim": 2048, "scaling": "std",
}  # fmt: skip


def batch():
    return {
        "past_values": torch.randn(BATCH, PAST, 7).cuda(),
        "past_time_features": torch.randn(BATCH, PAST, FEATURES).cuda(),
        "past_observed_mask": torch.ones(BATCH, PAST, 7).cuda(),
        "future_values": torch.randn(BATCH, FUTURE, 7).cuda(),
        "future_time_features": torch.randn(BATCH, FUTURE, FEATURES).cuda(),
    }


for kind, config in ((AutoformerForPrediction, AutoformerConfig), (InformerForPrediction, InformerConfig)):
    model = kind(config(**SHAPE)).cuda().train()
    optimizer = torch.optim.NAdam(model.parameters(), 1e-4)
    for _ in range(3):
        loss = model(**batch()).loss
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_value_(model.parameters(), 1.0)
        optimizer.step()
        print("loss", loss.item(), flush=True)
    del model, optimizer
