"""Keyword spotting with WavLM under the Trainer: a frozen feature encoder, SpecAugment, fp16, padded lengths, Adafactor without a rate."""

import tempfile

import numpy as np
import torch
from torch.utils.data import Dataset
from transformers import Trainer, TrainingArguments, Wav2Vec2FeatureExtractor, WavLMConfig, WavLMForSequenceClassification

extractor = Wav2Vec2FeatureExtractor(feature_size=1, sampling_rate=16000, do_normalize=True, return_attention_mask=True)


class Clips(Dataset):
    def __init__(self, count, seed):
        self.count, self.seed = count, seed

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        draw = np.random.default_rng(self.seed + index)
        return {"input_values": draw.standard_normal(int(draw.integers(4, 13)) * 16000).astype("float32"), "labels": index % 35}


def collate(rows):
    batch = extractor([row["input_values"] for row in rows], sampling_rate=16000, padding=True, return_tensors="pt")
    batch["labels"] = torch.tensor([row["labels"] for row in rows])
    return batch


def compute_metrics(prediction):
    return {"accuracy": float((prediction.predictions.argmax(1) == prediction.label_ids).mean())}


config = WavLMConfig(
    hidden_size=1024, num_hidden_layers=24, num_attention_heads=16, intermediate_size=4096, do_stable_layer_norm=True,
    feat_extract_norm="layer", conv_bias=True, num_labels=35, mask_time_prob=0.075, layerdrop=0.0,
    use_weighted_layer_sum=True, classifier_proj_size=256,
)
model = WavLMForSequenceClassification(config)
model.freeze_feature_encoder()
with tempfile.TemporaryDirectory() as folder:
    arguments = TrainingArguments(
        folder, per_device_train_batch_size=8, per_device_eval_batch_size=16, gradient_accumulation_steps=2, max_steps=3, fp16=True,
        optim="adafactor", learning_rate=3e-5, warmup_steps=1, eval_strategy="steps", eval_steps=3, save_strategy="no",
        logging_steps=1, report_to=[], remove_unused_columns=False, label_names=["labels"], dataloader_num_workers=2,
    )
    Trainer(
        model=model, args=arguments, train_dataset=Clips(64, 0), eval_dataset=Clips(40, 1000), data_collator=collate,
        compute_metrics=compute_metrics,
    ).train()
