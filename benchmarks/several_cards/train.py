"""Training over two cards in one process, in the ways in which people do it."""

import argparse

import torch
import torch.nn.functional as F
from torch import nn


def teacher():
    """Distillation: a frozen ViT on the second card teaches a ResNet on the first."""
    import timm

    large = timm.create_model("vit_base_patch16_224", num_classes=1000).eval().to("cuda:1")
    small = timm.create_model("resnet50", num_classes=1000).to("cuda:0")
    optimizer = torch.optim.SGD(small.parameters(), lr=0.1, momentum=0.9)
    for _ in range(4):
        images = torch.randn(64, 3, 224, 224)
        with torch.no_grad(), torch.autocast("cuda", torch.bfloat16):
            wanted = large(images.to("cuda:1")).softmax(dim=-1)
        with torch.autocast("cuda", torch.bfloat16):
            loss = F.cross_entropy(small(images.to("cuda:0")), wanted.to("cuda:0"))
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()


def pipeline():
    """A stack of encoder layers, the second half of it on the second card."""
    first, second = (
        nn.TransformerEncoder(nn.TransformerEncoderLayer(1024, 16, 4096, batch_first=True, norm_first=True), 6)
        for _ in range(2)
    )
    first.to("cuda:0"), second.to("cuda:1")
    optimizer = torch.optim.AdamW([*first.parameters(), *second.parameters()], lr=1e-4)
    for _ in range(4):
        tokens = torch.randn(16, 512, 1024, device="cuda:0")
        output = second(first(tokens).to("cuda:1"))
        output.square().mean().backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)


def device_map():
    """GPT-2 medium spread over both cards by accelerate's dispatch."""
    from accelerate import dispatch_model, infer_auto_device_map
    from transformers import GPT2Config, GPT2LMHeadModel

    model = GPT2LMHeadModel(GPT2Config(n_layer=24, n_embd=1024, n_head=16))
    places = infer_auto_device_map(model, {0: "700MiB", 1: "2GiB"}, no_split_module_classes=["GPT2Block"])
    model = dispatch_model(model, places)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    for _ in range(4):
        ids = torch.randint(0, 50257, (4, 512), device="cuda:0")
        model(input_ids=ids, labels=ids).loss.backward()
        optimizer.step()
        optimizer.zero_grad()


def data_parallel():
    """A ResNet in nn.DataParallel, which copies it to both cards in every forward."""
    import torchvision

    model = nn.DataParallel(torchvision.models.resnet50().cuda(), device_ids=[0, 1])
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for _ in range(4):
        images, labels = torch.randn(64, 3, 224, 224).cuda(), torch.randint(0, 1000, (64,)).cuda()
        F.cross_entropy(model(images), labels).backward()
        optimizer.step()
        optimizer.zero_grad()


TASKS = {"teacher": teacher, "pipeline": pipeline, "device-map": device_map, "data-parallel": data_parallel}

if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("task", choices=TASKS)
    TASKS[parser.parse_args().task]()
