"""Mask2Former on Swin under Accelerate: masks matched on the host, points drawn where masks are unsure, instances of every picture differ."""

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch.utils.data import DataLoader, Dataset
from transformers import Mask2FormerConfig, Mask2FormerForUniversalSegmentation, SchedulerType, SwinConfig, get_scheduler


class Instances(Dataset):
    def __init__(self, count, size=384):
        self.count, self.size = count, size

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        draw = torch.Generator().manual_seed(index)
        count = 1 + (5 * index) % 9
        rows = torch.arange(self.size).float()
        centre = torch.rand(count, 2, generator=draw) * self.size
        radius = torch.rand(count, generator=draw) * 60 + 20
        masks = ((rows[None, :, None] - centre[:, :1, None]) ** 2 + (rows[None, None] - centre[:, 1:, None]) ** 2).sqrt() < radius[:, None, None]
        return {
            "pixel_values": torch.randn(3, self.size, self.size, generator=draw),
            "pixel_mask": torch.ones(self.size, self.size, dtype=torch.long),
            "mask_labels": masks.float(),
            "class_labels": torch.randint(0, 80, (count,), generator=draw),
        }


def collate_fn(examples):
    batch = {key: torch.stack([example[key] for example in examples]) for key in ("pixel_values", "pixel_mask")}
    batch["class_labels"] = [example["class_labels"] for example in examples]
    batch["mask_labels"] = [example["mask_labels"] for example in examples]
    return batch


set_seed(0)
torch.manual_seed(0)
accelerator = Accelerator(mixed_precision="bf16", gradient_accumulation_steps=1)
backbone = SwinConfig(
    image_size=384, embed_dim=96, depths=[2, 2, 6, 2], num_heads=[3, 6, 12, 24], window_size=7, drop_path_rate=0.3,
    out_features=["stage1", "stage2", "stage3", "stage4"],
)
model = Mask2FormerForUniversalSegmentation(Mask2FormerConfig(backbone_config=backbone, num_labels=80))
train = DataLoader(Instances(32), shuffle=True, batch_size=8, collate_fn=collate_fn, num_workers=2)
valid = DataLoader(Instances(16), batch_size=8, collate_fn=collate_fn)
optimizer = torch.optim.AdamW(list(model.parameters()), lr=1e-4, betas=(0.9, 0.999), eps=1e-8)
scheduler = get_scheduler(name=SchedulerType.CONSTANT, optimizer=optimizer, num_warmup_steps=0, num_training_steps=12)
model, optimizer, train, valid, scheduler = accelerator.prepare(model, optimizer, train, valid, scheduler)
model.train()
total = 0
for step, batch in enumerate(train):
    with accelerator.accumulate(model):
        outputs = model(**batch)
        loss = outputs.loss
        total += loss.detach().float()
        accelerator.backward(loss)
        optimizer.step()
        scheduler.step()
        optimizer.zero_grad()
    accelerator.print(step, loss.item())
model.eval()
for batch in valid:
    with torch.no_grad():
        outputs = model(**batch)
    masks = outputs.masks_queries_logits.float().sigmoid()
    scores = outputs.class_queries_logits.float().softmax(-1)[..., :-1].max(-1).values
    accelerator.print(total.item(), masks.shape, scores.mean().item())
