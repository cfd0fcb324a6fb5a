"""Tables: every column a token, a transformer over columns, large batches, several seeds in one, an evaluation of 50,000 rows."""

import torch
import torch.nn.functional as F
from torch import nn


class Tokens(nn.Module):
    def __init__(self, numbers=40, sizes=(1000, 200, 50, 12, 12, 7, 3), width=192):
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.randn(numbers, width) * 0.02), nn.Parameter(torch.zeros(numbers, width))
        self.embed = nn.Embedding(sum(sizes), width)
        self.register_buffer("starts", torch.tensor([0, *sizes[:-1]]).cumsum(0))
        self.first = nn.Parameter(torch.zeros(width))

    def forward(self, numbers, kinds):
        columns = numbers[..., None] * self.weight + self.bias
        return torch.cat([self.first.expand(len(numbers), 1, -1), columns, self.embed(kinds + self.starts)], 1)


torch.manual_seed(0)
tokens = Tokens().cuda()
layer = nn.TransformerEncoderLayer(192, 8, 256, 0.2, "gelu", batch_first=True, norm_first=True)
body, head = nn.TransformerEncoder(layer, 4, enable_nested_tensor=False).cuda(), nn.Sequential(nn.LayerNorm(192), nn.ReLU(), nn.Linear(192, 1)).cuda()
model = nn.ModuleList([tokens, body, head])
optimizer = torch.optim.RAdam(model.parameters(), 1e-4, weight_decay=1e-5, decoupled_weight_decay=True)


def rows(count):
    kinds = torch.stack([torch.randint(0, size, (count,)) for size in (1000, 200, 50, 12, 12, 7, 3)], 1)
    return torch.randn(count, 40).cuda(), kinds.cuda(), torch.randn(count).cuda()


for _ in range(4):
    model.train()
    numbers, kinds, wanted = rows(4096)
    loss = F.huber_loss(head(body(tokens(numbers, kinds))[:, 0]).squeeze(1), wanted)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print("loss", loss.item(), flush=True)
model.eval()
with torch.inference_mode():
    made = [head(body(tokens(n, k))[:, 0]).squeeze(1) for n, k, _ in (rows(12500) for _ in range(4))]
print("mean", torch.cat(made).mean().item())
