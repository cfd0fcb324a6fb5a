import torch, torch.nn as nn, torch.nn.functional as F
from torchvision.models import resnet18, resnet50

dev = "cuda"
m = resnet18(num_classes=128).to(dev)
opt = torch.optim.SGD(m.parameters(), 0.1, momentum=0.9)
for step in range(40):
    x = torch.randn(64, 3, 128, 128, device=dev)
    z1, z2 = F.normalize(m(x)), F.normalize(m(x.flip(-1)))
    l = F.cross_entropy(z1 @ z2.t() / 0.1, torch.arange(64, device=dev))
    opt.zero_grad()
    l.backward()
    opt.step()
    if step % 10 == 0:
        print("pre", step, l.item())
torch.save(m.state_dict(), "pre.pt")
del opt
big = resnet50(num_classes=10).to(dev)
big.conv1.load_state_dict(m.conv1.state_dict())
opt = torch.optim.AdamW(big.parameters(), 1e-3)
for step in range(40):
    x = torch.randn(128, 3, 192, 192, device=dev)
    l = F.cross_entropy(big(x), torch.randint(0, 10, (128,), device=dev), label_smoothing=0.1)
    opt.zero_grad()
    l.backward()
    opt.step()
    if step % 10 == 0:
        print("fine", step, l.item())
big.eval()
with torch.no_grad():
    for _ in range(5):
        print(big(torch.randn(1024, 3, 256, 256, device=dev)).argmax(1).float().mean().item())
