"""Segment Anything fine-tuned: a frozen picture encoder, boxes as prompts, masks scored by Dice and focal loss."""

import torch
import torch.nn.functional as F
from torch.optim import Adam
from torch.utils.data import DataLoader, Dataset
from torchvision.ops import sigmoid_focal_loss
from transformers import SamConfig, SamModel


class Cells(Dataset):
    def __len__(self):
        return 24

    def __getitem__(self, index):
        corner = torch.randint(0, 500, (2,))
        box = torch.cat([corner, corner + torch.randint(60, 500, (2,))]).float()
        mask = torch.zeros(256, 256)
        left, top, right, bottom = (box / 4).long().tolist()
        mask[top:bottom, left:right] = 1
        return {"pixel_values": torch.randn(3, 1024, 1024), "input_boxes": box[None], "ground_truth_mask": mask}


def dice_loss(logits, target):
    probabilities = logits.sigmoid().flatten(1)
    target = target.flatten(1)
    return (1 - (2 * (probabilities * target).sum(1) + 1) / (probabilities.sum(1) + target.sum(1) + 1)).mean()


model = SamModel(SamConfig())
for name, param in model.named_parameters():
    if name.startswith("vision_encoder") or name.startswith("prompt_encoder"):
        param.requires_grad_(False)
device = "cuda" if torch.cuda.is_available() else "cpu"
model.to(device)
optimizer = Adam(model.mask_decoder.parameters(), lr=1e-5, weight_decay=0)
loader = DataLoader(Cells(), batch_size=4, shuffle=True, num_workers=2, pin_memory=True)
model.train()
for step, batch in enumerate(loader):
    outputs = model(
        pixel_values=batch["pixel_values"].to(device), input_boxes=batch["input_boxes"].to(device), multimask_output=False
    )
    masks = outputs.pred_masks.squeeze(1)
    truth = batch["ground_truth_mask"].float().to(device).unsqueeze(1)
    loss = dice_loss(masks, truth) + 20 * sigmoid_focal_loss(masks, truth, reduction="mean")
    quality = F.mse_loss(outputs.iou_scores.flatten(), ((masks > 0) == truth.bool()).float().mean((1, 2, 3)))
    optimizer.zero_grad()
    (loss + quality).backward()
    optimizer.step()
    print(f"{step} {loss.item():.4f}")
    if step == 4:
        break
