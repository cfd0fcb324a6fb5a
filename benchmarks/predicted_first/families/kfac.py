"""Natural gradients: Kronecker factors from hooks on inputs and gradients (patches by unfold), eigenvectors, clipped steps."""

import math

import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim


def extract_patches(x, kernel_size, stride, padding):
    if padding[0] + padding[1] > 0:
        x = F.pad(x, (padding[1], padding[1], padding[0], padding[0])).data
    x = x.unfold(2, kernel_size[0], stride[0])
    x = x.unfold(3, kernel_size[1], stride[1])
    x = x.transpose_(1, 2).transpose_(2, 3).contiguous()
    return x.view(x.size(0), x.size(1), x.size(2), x.size(3) * x.size(4) * x.size(5))


def compute_cov_a(a, layer):
    batch = a.size(0)
    if isinstance(layer, nn.Conv2d):
        a = extract_patches(a, layer.kernel_size, layer.stride, layer.padding)
        spatial = a.size(1) * a.size(2)
        a = a.view(-1, a.size(-1))
        if layer.bias is not None:
            a = torch.cat([a, a.new(a.size(0), 1).fill_(1)], 1)
        a = a / spatial
    elif layer.bias is not None:
        a = torch.cat([a, a.new(a.size(0), 1).fill_(1)], 1)
    return a.t() @ (a / batch)


def compute_cov_g(g, layer):
    batch = g.size(0)
    if isinstance(layer, nn.Conv2d):
        spatial = g.size(2) * g.size(3)
        g = g.transpose(1, 2).transpose(2, 3).contiguous().view(-1, g.size(1))
        g = g * batch * spatial
        return g.t() @ (g / g.size(0))
    g = g * batch
    return g.t() @ (g / batch)


class KFAC(optim.Optimizer):
    def __init__(self, model, lr=0.001, momentum=0.9, decay=0.95, damping=0.001, kl_clip=0.001, wd=3e-3, ts=2, tinv=4):
        super().__init__(model.parameters(), dict(lr=lr, momentum=momentum))
        self.decay, self.damping, self.kl_clip, self.wd, self.ts, self.tinv = decay, damping, kl_clip, wd, ts, tinv
        self.model, self.modules, self.steps = model, [], 0
        self.aa, self.gg, self.qa, self.qg, self.da, self.dg = {}, {}, {}, {}, {}, {}
        for module in model.modules():
            if isinstance(module, (nn.Linear, nn.Conv2d)):
                self.modules.append(module)
                module.register_forward_pre_hook(self._save_input)
                module.register_full_backward_hook(self._save_grad)

    def _update(self, new, stat):
        stat *= self.decay / (1 - self.decay)
        stat += new
        stat *= 1 - self.decay

    def _save_input(self, module, inp):
        if torch.is_grad_enabled() and self.steps % self.ts == 0:
            aa = compute_cov_a(inp[0].data, module)
            if self.steps == 0:
                self.aa[module] = torch.diag(aa.new(aa.size(0)).fill_(1))
            self._update(aa, self.aa[module])

    def _save_grad(self, module, _, grad_output):
        if self.steps % self.ts == 0:
            gg = compute_cov_g(grad_output[0].data, module)
            if self.steps == 0:
                self.gg[module] = torch.diag(gg.new(gg.size(0)).fill_(1))
            self._update(gg, self.gg[module])

    def _invert(self, m):
        eps = 1e-10
        self.da[m], self.qa[m] = torch.linalg.eigh(self.aa[m])
        self.dg[m], self.qg[m] = torch.linalg.eigh(self.gg[m])
        self.da[m].mul_((self.da[m] > eps).float())
        self.dg[m].mul_((self.dg[m] > eps).float())

    def _natural(self, m):
        grad = m.weight.grad.data.view(m.weight.size(0), -1)
        if m.bias is not None:
            grad = torch.cat([grad, m.bias.grad.data.view(-1, 1)], 1)
        v1 = self.qg[m].t() @ grad @ self.qa[m]
        v2 = v1 / (self.dg[m].unsqueeze(1) * self.da[m].unsqueeze(0) + self.damping)
        v = self.qg[m] @ v2 @ self.qa[m].t()
        if m.bias is None:
            return [v.view(m.weight.size())]
        return [v[:, :-1].reshape(m.weight.size()), v[:, -1:].reshape(m.bias.size())]

    @torch.no_grad()
    def step(self, closure=None):
        lr, updates = self.param_groups[0]["lr"], {}
        for m in self.modules:
            if self.steps % self.tinv == 0:
                self._invert(m)
            updates[m] = self._natural(m)
        vg_sum = 0
        for m in self.modules:
            v = updates[m]
            vg_sum += (v[0] * m.weight.grad.data * lr**2).sum().item()
            if m.bias is not None:
                vg_sum += (v[1] * m.bias.grad.data * lr**2).sum().item()
        nu = min(1.0, math.sqrt(self.kl_clip / max(abs(vg_sum), 1e-12)))
        for m in self.modules:
            m.weight.grad.data.copy_(updates[m][0]).mul_(nu)
            if m.bias is not None:
                m.bias.grad.data.copy_(updates[m][1]).mul_(nu)
        for p in self.param_groups[0]["params"]:
            d_p = p.grad.data
            if self.steps >= 20:
                d_p.add_(p.data, alpha=self.wd)
            state = self.state[p]
            if "momentum_buffer" not in state:
                buf = state["momentum_buffer"] = torch.zeros_like(p.data)
                buf.mul_(0.9).add_(d_p)
            else:
                buf = state["momentum_buffer"]
                buf.mul_(0.9).add_(d_p)
            p.data.add_(buf, alpha=-lr)
        self.steps += 1


def vgg(widths=(64, 64, "M", 128, 128, "M", 256, 256, "M", 256, 256, "M")):
    layers, cin = [], 3
    for w in widths:
        if w == "M":
            layers += [nn.MaxPool2d(2, 2), nn.LocalResponseNorm(5)]
        else:
            layers += [nn.Conv2d(cin, w, 3, padding=1), nn.BatchNorm2d(w), nn.ReLU()]
            cin = w
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(1024, 512), nn.ReLU(), nn.Linear(512, 100))


net = vgg().cuda()
optimizer = KFAC(net, lr=0.01)
criterion = nn.CrossEntropyLoss()
for i in range(5):
    inputs, targets = torch.randn(512, 3, 32, 32).cuda(), torch.randint(0, 100, (512,)).cuda()
    optimizer.zero_grad()
    outputs = net(inputs)
    loss = criterion(outputs, targets)
    loss.backward()
    optimizer.step()
    print(i, loss.item(), outputs.max(1)[1].eq(targets).sum().item(), flush=True)
