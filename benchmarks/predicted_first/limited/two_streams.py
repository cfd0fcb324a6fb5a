"""A teacher on a stream of its own beside the student, and batches that a third stream fetches ahead."""

import torch
import torch.nn.functional as F
from torchvision.models import resnet50, vit_b_16

BATCH_SIZE, STEPS = 48, 5


class Ahead:
    """Copies the next batch while this one is trained on, as NVIDIA's data prefetcher does."""

    def __init__(self, batches):
        self.batches = iter(batches)
        self.stream = torch.cuda.Stream()
        self.fetch()

    def fetch(self):
        images, labels = next(self.batches, (None, None))
        self.images = self.labels = None
        if images is not None:
            with torch.cuda.stream(self.stream):
                self.images = images.pin_memory().cuda(non_blocking=True).sub_(0.5).div_(0.25)
                self.labels = labels.pin_memory().cuda(non_blocking=True)

    def next(self):
        torch.cuda.current_stream().wait_stream(self.stream)
        images, labels = self.images, self.labels
        if images is not None:
            images.record_stream(torch.cuda.current_stream())
            labels.record_stream(torch.cuda.current_stream())
        self.fetch()
        return images, labels


torch.manual_seed(0)
student, teacher = resnet50(num_classes=1000).cuda(), vit_b_16().cuda().eval()
optimizer = torch.optim.AdamW(student.parameters(), lr=1e-3)
beside = torch.cuda.Stream()
batches = [(torch.rand(BATCH_SIZE, 3, 224, 224), torch.randint(0, 1000, (BATCH_SIZE,))) for _ in range(STEPS)]
ahead = Ahead(batches)
images, labels = ahead.next()
while images is not None:
    beside.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(beside), torch.no_grad(), torch.autocast("cuda", dtype=torch.bfloat16):
        told = teacher(images).float().softmax(-1)
        images.record_stream(beside)
    with torch.autocast("cuda", dtype=torch.bfloat16):
        logits = student(images)
    torch.cuda.current_stream().wait_stream(beside)
    told.record_stream(torch.cuda.current_stream())
    loss = F.cross_entropy(logits.float(), labels) + F.kl_div(
        logits.float().log_softmax(-1), told, reduction="batchmean"
    )
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"loss {loss.item():.3f}", flush=True)
    images, labels = ahead.next()
