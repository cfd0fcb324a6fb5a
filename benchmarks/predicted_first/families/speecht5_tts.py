"""SpeechT5 taught to speak, as transformers' guide does: guided attention, mel frames padded by -100, speakers' vectors, fp16, checkpointing."""

import tempfile

import torch
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import Dataset
from transformers import Seq2SeqTrainer, Seq2SeqTrainingArguments, SpeechT5Config, SpeechT5ForTextToSpeech


class Sentences(Dataset):
    def __init__(self, count, seed):
        self.count, self.seed = count, seed

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        draw = torch.Generator().manual_seed(self.seed + index)
        letters = int(torch.randint(60, 200, (1,), generator=draw))
        frames = 4 * letters + int(torch.randint(0, 40, (1,), generator=draw))
        speaker = torch.randn(512, generator=draw)
        return {
            "input_ids": torch.randint(4, 80, (letters,), generator=draw),
            "labels": torch.randn(frames, 80, generator=draw) - 2,
            "speaker_embeddings": speaker / speaker.norm(),
        }


def collate_fn(features, reduction=2):
    ids = [feature["input_ids"] for feature in features]
    labels = [feature["labels"][: len(feature["labels"]) // reduction * reduction] for feature in features]
    return {
        "input_ids": pad_sequence(ids, batch_first=True, padding_value=1),
        "attention_mask": pad_sequence([torch.ones_like(row) for row in ids], batch_first=True),
        "labels": pad_sequence(labels, batch_first=True, padding_value=-100.0),
        "speaker_embeddings": torch.stack([feature["speaker_embeddings"] for feature in features]),
    }


torch.manual_seed(0)
model = SpeechT5ForTextToSpeech(SpeechT5Config(encoder_layerdrop=0.0, decoder_layerdrop=0.0))
model.config.use_cache = False
with tempfile.TemporaryDirectory() as folder:
    arguments = Seq2SeqTrainingArguments(
        folder, per_device_train_batch_size=16, gradient_accumulation_steps=2, per_device_eval_batch_size=8, learning_rate=1e-5, warmup_steps=2,
        max_steps=3, fp16=True, gradient_checkpointing=True, gradient_checkpointing_kwargs={"use_reentrant": False}, eval_strategy="steps",
        eval_steps=3, save_strategy="no", logging_steps=1, report_to=[], label_names=["labels"], remove_unused_columns=False,
    )
    Seq2SeqTrainer(
        model=model, args=arguments, train_dataset=Sentences(128, 0), eval_dataset=Sentences(20, 1000), data_collator=collate_fn
    ).train()
