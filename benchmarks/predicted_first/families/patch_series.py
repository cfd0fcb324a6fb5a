"""PatchTST over many channels: masked pretraining under the Trainer, then the encoder moved to a forecasting model, frozen, then tuned."""

import tempfile

import numpy as np
import torch
from torch.utils.data import Dataset
from transformers import EarlyStoppingCallback, PatchTSTConfig, PatchTSTForPrediction, PatchTSTForPretraining, Trainer, TrainingArguments


class Meters(Dataset):
    def __init__(self, count, context=512, horizon=96, channels=64, future=True):
        draw = np.random.default_rng(0)
        steps = np.arange(count + context + horizon)[:, None]
        wave = np.sin(steps * 2 * np.pi / 24 + draw.uniform(0, 6, channels)) + 0.3 * draw.standard_normal((len(steps), channels))
        self.series = torch.tensor(wave, dtype=torch.float32)
        self.count, self.context, self.horizon, self.future = count, context, horizon, future

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        row = {"past_values": self.series[index : index + self.context]}
        if self.future:
            row["future_values"] = self.series[index + self.context : index + self.context + self.horizon]
        return row


def fit(model, rate, folder, future):
    arguments = TrainingArguments(
        folder, learning_rate=rate, max_steps=3, per_device_train_batch_size=32, per_device_eval_batch_size=48, eval_strategy="steps",
        eval_steps=3, save_strategy="steps", save_steps=3, load_best_model_at_end=True, metric_for_best_model="eval_loss",
        greater_is_better=False, logging_steps=1, report_to=[], lr_scheduler_type="constant",
        label_names=["future_values"] if future else ["past_values"],
    )
    trainer = Trainer(
        model=model, args=arguments, train_dataset=Meters(400, future=future), eval_dataset=Meters(96, future=future),
        callbacks=[EarlyStoppingCallback(early_stopping_patience=2, early_stopping_threshold=0.0001)],
    )
    trainer.train()
    return trainer


torch.manual_seed(0)
settings = dict(
    num_input_channels=64, context_length=512, patch_length=12, patch_stride=12, d_model=256, num_hidden_layers=4, num_attention_heads=16,
    ffn_dim=512, dropout=0.2, head_dropout=0.2, scaling="std", loss="mse", norm_type="batchnorm", positional_encoding_type="sincos",
)
with tempfile.TemporaryDirectory() as folder:
    pretrained = PatchTSTForPretraining(PatchTSTConfig(mask_type="random", random_mask_ratio=0.4, use_cls_token=True, **settings))
    fit(pretrained, 1e-3, folder + "/pretrain", False)
    model = PatchTSTForPrediction(PatchTSTConfig(prediction_length=96, use_cls_token=True, **settings))
    model.model.load_state_dict(pretrained.model.state_dict(), strict=False)
    model.to("cuda")
    for parameter in model.model.parameters():
        parameter.requires_grad = False
    fit(model, 1e-3, folder + "/probe", True)
    for parameter in model.model.parameters():
        parameter.requires_grad = True
    print(fit(model, 1e-4, folder + "/tune", True).evaluate(Meters(64)))
