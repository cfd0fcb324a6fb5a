"""A preconditioned optimizer: statistics of both sides of every weight, their eigenbases by eigh and then by qr, on a ViT."""

import timm
import torch


class Soap(torch.optim.Optimizer):
    def __init__(self, params, lr=3e-3, betas=(0.95, 0.95), eps=1e-8, weight_decay=0.01, every=2, largest=2048):
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "every": every, "largest": largest})

    @staticmethod
    def turn(tensor, bases, back=False):
        for basis in bases:
            tensor = tensor.permute(*range(1, tensor.dim()), 0) if basis is None else torch.tensordot(tensor, basis, dims=[[0], [int(back)]])
        return tensor

    def statistics(self, state, gradient, beta):
        for dim, matrix in enumerate(state["sides"]):
            if matrix is not None:
                others = [d for d in range(gradient.dim()) if d != dim]
                matrix.lerp_(torch.tensordot(gradient, gradient, dims=[others, others]), 1 - beta)

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            one, two = group["betas"]
            for p in group["params"]:
                if p.grad is None:
                    continue
                state, gradient = self.state[p], p.grad
                if not state:
                    state["step"], state["first"], state["second"] = 0, torch.zeros_like(p), torch.zeros_like(p)
                    state["sides"] = [
                        torch.zeros(n, n, device=p.device) if p.dim() > 1 and n <= group["largest"] else None for n in p.shape
                    ]
                    self.statistics(state, gradient, two)
                    state["bases"] = [
                        None if m is None else torch.linalg.eigh(m + 1e-30 * torch.eye(len(m), device=m.device))[1].flip(1)
                        for m in state["sides"]
                    ]
                    continue
                state["step"] += 1
                turned = self.turn(gradient, state["bases"])
                state["first"].lerp_(gradient, 1 - one)
                first = self.turn(state["first"], state["bases"])
                state["second"].mul_(two).addcmul_(turned, turned, value=1 - two)
                update = self.turn(first / (state["second"].sqrt() + group["eps"]), state["bases"], back=True)
                p.mul_(1 - group["lr"] * group["weight_decay"]).add_(update, alpha=-group["lr"])
                self.statistics(state, gradient, two)
                if state["step"] % group["every"] == 0:
                    for n, (matrix, basis) in enumerate(zip(state["sides"], state["bases"], strict=True)):
                        if matrix is not None:
                            order = torch.argsort((basis.t() @ matrix @ basis).diag(), descending=True)
                            basis = basis[:, order]
                            state["second"] = state["second"].index_select(n, order)
                            state["bases"][n] = torch.linalg.qr(matrix @ basis)[0]


torch.manual_seed(0)
model = timm.create_model("vit_small_patch16_224", num_classes=1000).cuda().train()
optimizer = Soap(model.parameters())
for _ in range(5):
    images, labels = torch.randn(64, 3, 224, 224).cuda(), torch.randint(0, 1000, (64,)).cuda()
    with torch.autocast("cuda", torch.bfloat16):
        loss = torch.nn.functional.cross_entropy(model(images), labels)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    print("loss", loss.item(), flush=True)
