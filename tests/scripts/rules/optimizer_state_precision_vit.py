"""A ViT in bfloat16 under Adam with float32 moments."""

import argparse

import timm
import torch
import torch.nn.functional as F

parser = argparse.ArgumentParser()
parser.add_argument("--near-miss", action="store_true")
parser.add_argument("--fixed", action="store_true")
args = parser.parse_args()


class Adam32(torch.optim.Optimizer):
    """Adam whose moments have the type of `state_dtype`."""

    def __init__(self, parameters, lr, state_dtype):
        super().__init__(parameters, {"lr": lr, "state_dtype": state_dtype})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for parameter in group["params"]:
                state = self.state[parameter]
                if not state:
                    state["exp_avg"] = torch.zeros_like(parameter, dtype=group["state_dtype"])
                    state["exp_avg_sq"] = torch.zeros_like(parameter, dtype=group["state_dtype"])
                grad = parameter.grad.to(group["state_dtype"])
                state["exp_avg"].lerp_(grad, 0.1)
                state["exp_avg_sq"].mul_(0.999).addcmul_(grad, grad, value=0.001)
                update = state["exp_avg"] / (state["exp_avg_sq"].sqrt() + 1e-8)
                parameter.sub_(update.to(parameter.dtype), alpha=group["lr"])


dtype = torch.float32 if args.near_miss else torch.bfloat16
model = timm.create_model("vit_base_patch32_224", pretrained=False).to("cuda", dtype)
optimizer = Adam32(model.parameters(), lr=1e-4, state_dtype=torch.bfloat16 if args.fixed else torch.float32)

for step in range(4):
    images = torch.randn(2, 3, 224, 224, device="cuda", dtype=dtype)
    loss = F.cross_entropy(model(images), torch.randint(1000, (2,), device="cuda"))
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    print(f"step {step}: loss {loss.item():.4f}")
