"""Pictures in the largest batch that accelerate's `find_executable_batch_size` finds to run; fp16, then an evaluation."""

import torch
import torch.nn.functional as F
from accelerate.utils import find_executable_batch_size
from torchvision.models import resnet50


@find_executable_batch_size(starting_batch_size=256)
def train(batch_size):
    print(f"batch of {batch_size}", flush=True)
    torch.manual_seed(0)
    model = resnet50(num_classes=100).cuda()
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9, nesterov=True)
    scaler = torch.amp.GradScaler("cuda")
    for _ in range(4):
        images, labels = torch.rand(batch_size, 3, 160, 160).cuda(), torch.randint(0, 100, (batch_size,)).cuda()
        with torch.autocast("cuda", dtype=torch.float16):
            loss = F.cross_entropy(model(images), labels)
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        print(f"loss {loss.item():.3f}", flush=True)
    model.eval()
    with torch.no_grad():
        print(model(torch.rand(2 * batch_size, 3, 160, 160).cuda()).argmax(-1).float().mean().item(), flush=True)


train()
