import argparse, logging, time
import torch, timm
from timm.utils import ModelEmaV3, NativeScaler, AverageMeter, accuracy
from timm.data import Mixup
from timm.loss import SoftTargetCrossEntropy
from timm.optim import create_optimizer_v2
from timm.scheduler import CosineLRScheduler

logging.basicConfig(level=logging.INFO)
log = logging.getLogger("train")
p = argparse.ArgumentParser()
p.add_argument("--model", default="maxvit_tiny_rw_224")
p.add_argument("--bs", type=int, default=32)
p.add_argument("--opt", default="lamb")
p.add_argument("--cl", action="store_true")
a = p.parse_args()
torch.backends.cudnn.benchmark = True
m = timm.create_model(a.model, num_classes=1000, drop_path_rate=0.2).cuda()
if a.cl:
    m = m.to(memory_format=torch.channels_last)
opt = create_optimizer_v2(m, opt=a.opt, lr=1e-3, weight_decay=0.05)
ema = ModelEmaV3(m, decay=0.9998)
sc = NativeScaler()
mix = Mixup(mixup_alpha=0.8, cutmix_alpha=1.0, num_classes=1000)
lf = SoftTargetCrossEntropy().cuda()
sch = CosineLRScheduler(opt, 10)
meter = AverageMeter()
for e in range(2):
    m.train()
    for i in range(3):
        x, y = torch.randn(a.bs, 3, 224, 224).cuda(), torch.randint(0, 1000, (a.bs,)).cuda()
        if a.cl:
            x = x.contiguous(memory_format=torch.channels_last)
        x, y = mix(x, y)
        with torch.autocast("cuda", dtype=torch.float16):
            loss = lf(m(x), y)
        opt.zero_grad()
        sc(loss, opt, clip_grad=1.0, parameters=m.parameters())
        ema.update(m, step=i)
        torch.cuda.synchronize()
        meter.update(loss.item(), x.size(0))
    m.eval()
    sch.step(e)
    with torch.no_grad():
        for mod in (m, ema.module):
            with torch.autocast("cuda", dtype=torch.float16):
                o = mod(x)
                log.info("%s %.3f", e, accuracy(o, torch.randint(0, 1000, (a.bs,)).cuda())[0].item())
