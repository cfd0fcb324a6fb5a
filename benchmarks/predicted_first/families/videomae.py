"""VideoMAE's pretraining under the Trainer: tubes masked in nine of ten, a small decoder, gradient checkpointing, Adagrad, emptied caches."""

import tempfile

import torch
from torch.utils.data import Dataset
from transformers import Trainer, TrainingArguments, VideoMAEConfig, VideoMAEForPreTraining


class Clips(Dataset):
    def __init__(self, config, count):
        self.count = count
        self.frames = config.num_frames // config.tubelet_size
        self.patches = (config.image_size // config.patch_size) ** 2

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        draw = torch.Generator().manual_seed(index)
        tube = torch.zeros(self.patches, dtype=torch.bool)
        tube[torch.randperm(self.patches, generator=draw)[: int(0.9 * self.patches)]] = True
        video = torch.randn(16, 3, 1, 1, generator=draw) + 0.1 * torch.randn(1, 3, 224, 224, generator=draw)
        return {"pixel_values": video, "bool_masked_pos": tube.repeat(self.frames)}


def collate_fn(examples):
    return {key: torch.stack([example[key] for example in examples]) for key in examples[0]}


torch.manual_seed(0)
config = VideoMAEConfig(hidden_size=1024, num_hidden_layers=24, num_attention_heads=16, intermediate_size=4096, decoder_hidden_size=512,
                        decoder_num_hidden_layers=8, decoder_num_attention_heads=8, decoder_intermediate_size=2048, norm_pix_loss=True)
model = VideoMAEForPreTraining(config)
with tempfile.TemporaryDirectory() as folder:
    arguments = TrainingArguments(
        folder, per_device_train_batch_size=16, per_device_eval_batch_size=16, max_steps=3, learning_rate=1e-3, optim="adagrad", bf16=True,
        gradient_checkpointing=True, torch_empty_cache_steps=2, eval_strategy="steps", eval_steps=2, prediction_loss_only=True,
        save_strategy="no", logging_steps=1, remove_unused_columns=False, report_to=[], dataloader_num_workers=2,
    )
    trainer = Trainer(model=model, args=arguments, train_dataset=Clips(config, 64), eval_dataset=Clips(config, 24), data_collator=collate_fn)
    trainer.train()
