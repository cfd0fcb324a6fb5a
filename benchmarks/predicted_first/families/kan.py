"""A Kolmogorov-Arnold network: B-splines on every edge, grids that are fitted anew by least squares, AdamW."""

import math

import torch
import torch.nn.functional as F

BATCH = 512


class KANLinear(torch.nn.Module):
    def __init__(self, a, b, grid_size=5, order=3, noise=0.1):
        super().__init__()
        self.a, self.b, self.grid_size, self.order, self.noise = a, b, grid_size, order, noise
        h = 2 / grid_size
        grid = (torch.arange(-order, grid_size + order + 1) * h - 1).expand(a, -1).contiguous()
        self.register_buffer("grid", grid)
        self.base_weight = torch.nn.Parameter(torch.Tensor(b, a))
        self.spline_weight = torch.nn.Parameter(torch.Tensor(b, a, grid_size + order))
        self.spline_scaler = torch.nn.Parameter(torch.Tensor(b, a))
        torch.nn.init.kaiming_uniform_(self.base_weight, a=math.sqrt(5))
        torch.nn.init.normal_(self.spline_weight, 0, noise / grid_size)
        torch.nn.init.kaiming_uniform_(self.spline_scaler, a=math.sqrt(5))

    def b_splines(self, x):
        grid = self.grid
        x = x.unsqueeze(-1)
        bases = ((x >= grid[:, :-1]) & (x < grid[:, 1:])).to(x.dtype)
        for k in range(1, self.order + 1):
            bases = ((x - grid[:, : -(k + 1)]) / (grid[:, k:-1] - grid[:, : -(k + 1)]) * bases[:, :, :-1]) + (
                (grid[:, k + 1 :] - x) / (grid[:, k + 1 :] - grid[:, 1:(-k)]) * bases[:, :, 1:]
            )
        return bases.contiguous()

    def curve2coeff(self, x, y):
        a = self.b_splines(x).transpose(0, 1)
        solution = torch.linalg.lstsq(a, y.transpose(0, 1)).solution
        return solution.permute(2, 0, 1).contiguous()

    @property
    def scaled(self):
        return self.spline_weight * self.spline_scaler.unsqueeze(-1)

    def forward(self, x):
        base = F.linear(F.silu(x), self.base_weight)
        spline = F.linear(self.b_splines(x).view(x.size(0), -1), self.scaled.view(self.b, -1))
        return base + spline

    @torch.no_grad()
    def update_grid(self, x, margin=0.01, eps=0.02):
        splines = self.b_splines(x).permute(1, 0, 2)
        coeff = self.scaled.permute(1, 2, 0)
        unreduced = torch.bmm(splines, coeff).permute(1, 0, 2)
        x_sorted = torch.sort(x, dim=0)[0]
        at = torch.linspace(0, x.size(0) - 1, self.grid_size + 1, dtype=torch.int64, device=x.device)
        adaptive = x_sorted[at]
        step = (x_sorted[-1] - x_sorted[0] + 2 * margin) / self.grid_size
        uniform = torch.arange(self.grid_size + 1, dtype=torch.float32, device=x.device).unsqueeze(1) * step
        uniform = uniform + x_sorted[0] - margin
        grid = eps * uniform + (1 - eps) * adaptive
        k = torch.arange(self.order, 0, -1, device=x.device).unsqueeze(1)
        grid = torch.concatenate(
            [grid[:1] - step * k, grid, grid[-1:] + step * torch.arange(1, self.order + 1, device=x.device).unsqueeze(1)]
        )
        self.grid.copy_(grid.T)
        self.spline_weight.data.copy_(self.curve2coeff(x, unreduced))

    def regularization(self):
        l1 = self.spline_weight.abs().mean(-1)
        p = l1 / l1.sum()
        return l1.sum() - torch.sum(p * p.log())


class KAN(torch.nn.Module):
    def __init__(self, widths):
        super().__init__()
        self.layers = torch.nn.ModuleList(KANLinear(a, b) for a, b in zip(widths, widths[1:]))

    def forward(self, x, update_grid=False):
        for layer in self.layers:
            if update_grid:
                layer.update_grid(x)
            x = layer(x)
        return x


torch.manual_seed(0)
model = KAN([784, 768, 256, 10]).to("cuda")
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=1e-4)
scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.8)
for step in range(5):
    images = (torch.rand(BATCH, 1, 28, 28) * 2 - 1).view(-1, 784).to("cuda")
    labels = torch.randint(0, 10, (BATCH,)).to("cuda")
    optimizer.zero_grad()
    output = model(images, update_grid=step in (1, 3))
    loss = F.cross_entropy(output, labels) + 1e-5 * sum(layer.regularization() for layer in model.layers)
    loss.backward()
    optimizer.step()
    accuracy = (output.argmax(dim=1) == labels).float().mean()
    print(step, loss.item(), accuracy.item(), flush=True)
scheduler.step()
