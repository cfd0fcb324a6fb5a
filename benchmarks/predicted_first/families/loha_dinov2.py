"""Fine-tuning of DINOv2 with registers of low rank: LoHa and OFT adapters one after the other, a trained head, worker processes."""

import torch
from peft import LoHaConfig, OFTConfig, get_peft_model
from torch.utils.data import DataLoader, Dataset
from torchvision.transforms import v2
from transformers import Dinov2Config, Dinov2ForImageClassification


class Pictures(Dataset):
    def __init__(self, count):
        self.count = count
        self.transform = v2.Compose([
            v2.RandomResizedCrop(224, antialias=True), v2.RandomHorizontalFlip(), v2.ToDtype(torch.float32, scale=True),
            v2.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225]),
        ])

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        picture = torch.randint(0, 256, (3, 256, 320), dtype=torch.uint8)
        return {"pixel_values": self.transform(picture), "labels": index % 101}


def adapters(name):
    common = {"target_modules": ["query", "value", "fc1"], "modules_to_save": ["classifier"]}
    if name == "loha":
        return LoHaConfig(r=16, alpha=16, rank_dropout=0.0, module_dropout=0.0, **common)
    return OFTConfig(r=0, oft_block_size=32, use_cayley_neumann=True, module_dropout=0.05, **common)


def train(name):
    config = Dinov2Config(hidden_size=1024, num_hidden_layers=24, num_attention_heads=16, num_labels=101, drop_path_rate=0.1)
    model = get_peft_model(Dinov2ForImageClassification(config), adapters(name)).to("cuda")
    model.print_trainable_parameters()
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3, fused=True)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=10)
    loader = DataLoader(Pictures(160), batch_size=32, shuffle=True, num_workers=4, pin_memory=True, drop_last=True, prefetch_factor=2)
    model.train()
    for step, batch in enumerate(loader):
        pixels = batch["pixel_values"].to("cuda", non_blocking=True)
        labels = batch["labels"].to("cuda", non_blocking=True)
        with torch.autocast("cuda", dtype=torch.bfloat16):
            output = model(pixel_values=pixels, labels=labels)
        optimizer.zero_grad()
        output.loss.backward()
        optimizer.step()
        scheduler.step()
        right = (output.logits.argmax(-1) == labels).float().mean()
        print(f"{name} {step} loss {output.loss.item():.3f} accuracy {right.item():.3f}")
    model.eval()
    merged = model.merge_and_unload()
    with torch.no_grad():
        merged(pixel_values=pixels)


if __name__ == "__main__":
    for method in ("loha", "oft"):
        train(method)
        torch.cuda.empty_cache()
