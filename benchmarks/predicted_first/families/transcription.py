"""Speech to text with scores of what is written: Whisper, fp16 under a Seq2SeqTrainer, beams at every evaluation."""

import tempfile

import torch
from torch.utils.data import Dataset
from transformers import Seq2SeqTrainer, Seq2SeqTrainingArguments, WhisperConfig, WhisperForConditionalGeneration


class Speech(Dataset):
    def __init__(self, count):
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        draw = torch.Generator().manual_seed(index)
        return {
            "input_features": torch.randn(80, 3000, generator=draw),
            "labels": torch.randint(0, 50000, (96,), generator=draw),
        }


def score(prediction):
    return {"length": float(prediction.predictions.shape[-1])}


torch.manual_seed(0)
config = WhisperConfig(
    d_model=512, encoder_layers=6, decoder_layers=6, encoder_attention_heads=8, decoder_attention_heads=8, encoder_ffn_dim=2048,
    decoder_ffn_dim=2048,
)
model = WhisperForConditionalGeneration(config)
model.generation_config.eos_token_id = None
model.generation_config.suppress_tokens = model.generation_config.begin_suppress_tokens = None
with tempfile.TemporaryDirectory() as folder:
    arguments = Seq2SeqTrainingArguments(
        folder, per_device_train_batch_size=12, per_device_eval_batch_size=8, max_steps=4, fp16=True, eval_strategy="steps", eval_steps=2,
        save_strategy="no", predict_with_generate=True, generation_max_length=64, generation_num_beams=3, logging_steps=1, report_to=[],
    )
    trainer = Seq2SeqTrainer(
        model=model, args=arguments, train_dataset=Speech(64), eval_dataset=Speech(16), compute_metrics=score
    )
    trainer.train()
