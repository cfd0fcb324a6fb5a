"""Training on attacked images: three steps of projected gradient on the input, then one on the weights; Swin of timm."""

import timm
import torch
import torch.nn.functional as F

torch.manual_seed(0)
model = timm.create_model("swin_tiny_patch4_window7_224", pretrained=False, num_classes=100, drop_path_rate=0.1).cuda()
optimizer = torch.optim.AdamW(model.parameters(), 5e-4, weight_decay=0.05)


def attacked(images, labels, size=4 / 255, steps=3):
    changed = images + torch.empty_like(images).uniform_(-size, size)
    for _ in range(steps):
        changed.requires_grad_()
        with torch.enable_grad():
            loss = F.cross_entropy(model(changed), labels)
        gradient = torch.autograd.grad(loss, changed)[0]
        changed = changed.detach() + size / 2 * gradient.sign()
        changed = torch.max(torch.min(changed, images + size), images - size).clamp(0, 1)
    return changed


for _ in range(3):
    images, labels = torch.rand(32, 3, 224, 224).cuda(), torch.randint(0, 100, (32,)).cuda()
    bad = attacked(images, labels)
    loss = F.cross_entropy(model(bad), labels) + F.kl_div(F.log_softmax(model(bad), 1), F.softmax(model(images), 1), reduction="batchmean")
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print("loss", loss.item(), flush=True)
