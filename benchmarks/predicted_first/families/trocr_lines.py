"""TrOCR as an encoder of pictures and a decoder of text: label smoothing, Seq2SeqTrainer, sequences generated at each evaluation."""

import tempfile

import numpy as np
import torch
from torch.utils.data import Dataset
from transformers import (
    Seq2SeqTrainer, Seq2SeqTrainingArguments, TrOCRConfig, VisionEncoderDecoderConfig, VisionEncoderDecoderModel, ViTConfig,
    default_data_collator,
)
from transformers.models.vision_encoder_decoder.modeling_vision_encoder_decoder import shift_tokens_right


class Lines(Dataset):
    def __init__(self, count, seed):
        self.count, self.seed = count, seed

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        draw = torch.Generator().manual_seed(self.seed + index)
        length = 8 + index % 48
        labels = torch.full((64,), -100)
        labels[:length] = torch.randint(4, 50000, (length,), generator=draw)
        return {"pixel_values": torch.randn(3, 384, 384, generator=draw), "labels": labels}


def collate_fn(rows):
    batch = default_data_collator(rows)
    batch["decoder_input_ids"] = shift_tokens_right(batch["labels"], 1, 0)
    return batch


def compute_metrics(prediction):
    sequences, labels = prediction.predictions, prediction.label_ids
    width = min(sequences.shape[1], labels.shape[1])
    return {"same": float(np.mean(sequences[:, :width] == labels[:, :width])), "width": sequences.shape[1]}


torch.manual_seed(0)
encoder = ViTConfig(image_size=384, patch_size=16, hidden_size=768, num_hidden_layers=12, num_attention_heads=12, qkv_bias=False)
decoder = TrOCRConfig(d_model=1024, decoder_layers=12, decoder_ffn_dim=4096, decoder_attention_heads=16, cross_attention_hidden_size=768)
model = VisionEncoderDecoderModel(VisionEncoderDecoderConfig.from_encoder_decoder_configs(encoder, decoder))
model.config.decoder_start_token_id = model.generation_config.decoder_start_token_id = 0
model.config.pad_token_id = model.generation_config.pad_token_id = 1
model.config.eos_token_id = model.generation_config.eos_token_id = 2
model.config.vocab_size = model.config.decoder.vocab_size
with tempfile.TemporaryDirectory() as folder:
    arguments = Seq2SeqTrainingArguments(
        folder, per_device_train_batch_size=16, per_device_eval_batch_size=16, max_steps=4, learning_rate=5e-5, bf16=True,
        label_smoothing_factor=0.1, optim="adamw_torch_fused", predict_with_generate=True, generation_max_length=24, generation_num_beams=1,
        eval_strategy="steps", eval_steps=4, save_strategy="no", logging_steps=1, report_to=[], dataloader_num_workers=2,
    )
    Seq2SeqTrainer(
        model=model, args=arguments, train_dataset=Lines(64, 0), eval_dataset=Lines(24, 1000), data_collator=collate_fn,
        compute_metrics=compute_metrics,
    ).train()
