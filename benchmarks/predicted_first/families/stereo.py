"""Depth from two eyes (PSMNet): pyramid pooling, a volume of costs filled slice by slice, stacked 3-D hourglasses, soft argmin."""

import torch
import torch.nn as nn
import torch.nn.functional as F

MAXDISP, BATCH, HEIGHT, WIDTH = 192, 3, 256, 512


def convbn(a, b, k, s, p, d):
    return nn.Sequential(nn.Conv2d(a, b, k, s, d if d > 1 else p, d, bias=False), nn.BatchNorm2d(b))


def convbn_3d(a, b, k, s, p):
    return nn.Sequential(nn.Conv3d(a, b, kernel_size=k, padding=p, stride=s, bias=False), nn.BatchNorm3d(b))


class BasicBlock(nn.Module):
    def __init__(self, a, b, stride, downsample, pad, dilation):
        super().__init__()
        self.conv1 = nn.Sequential(convbn(a, b, 3, stride, pad, dilation), nn.ReLU(inplace=True))
        self.conv2 = convbn(b, b, 3, 1, pad, dilation)
        self.downsample = downsample

    def forward(self, x):
        out = self.conv2(self.conv1(x))
        if self.downsample is not None:
            x = self.downsample(x)
        out += x
        return out


class FeatureExtraction(nn.Module):
    def __init__(self):
        super().__init__()
        self.inplanes = 32
        first = [convbn(3, 32, 3, 2, 1, 1), nn.ReLU(inplace=True)]
        for _ in range(2):
            first += [convbn(32, 32, 3, 1, 1, 1), nn.ReLU(inplace=True)]
        self.firstconv = nn.Sequential(*first)
        self.layer1, self.layer2 = self.make(32, 3, 1, 1), self.make(64, 16, 2, 1)
        self.layer3, self.layer4 = self.make(128, 3, 1, 1), self.make(128, 3, 1, 2)
        self.branches = nn.ModuleList(
            nn.Sequential(nn.AvgPool2d((k, k), stride=(k, k)), convbn(128, 32, 1, 1, 0, 1), nn.ReLU(inplace=True))
            for k in (64, 32, 16, 8)
        )
        self.lastconv = nn.Sequential(convbn(320, 128, 3, 1, 1, 1), nn.ReLU(inplace=True), nn.Conv2d(128, 32, 1, bias=False))

    def make(self, planes, blocks, stride, dilation):
        downsample = None
        if stride != 1 or self.inplanes != planes:
            downsample = nn.Sequential(nn.Conv2d(self.inplanes, planes, 1, stride, bias=False), nn.BatchNorm2d(planes))
        layers = [BasicBlock(self.inplanes, planes, stride, downsample, 1, dilation)]
        self.inplanes = planes
        return nn.Sequential(*layers, *(BasicBlock(planes, planes, 1, None, 1, dilation) for _ in range(1, blocks)))

    def forward(self, x):
        raw = self.layer2(self.layer1(self.firstconv(x)))
        skip = self.layer4(self.layer3(raw))
        pooled = [F.interpolate(b(skip), skip.shape[2:], mode="bilinear", align_corners=True) for b in self.branches]
        return self.lastconv(torch.cat([raw, skip, *pooled], 1))


class Hourglass(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.conv1 = nn.Sequential(convbn_3d(c, c * 2, 3, 2, 1), nn.ReLU(inplace=True))
        self.conv2 = convbn_3d(c * 2, c * 2, 3, 1, 1)
        self.conv3 = nn.Sequential(convbn_3d(c * 2, c * 2, 3, 2, 1), nn.ReLU(inplace=True))
        self.conv4 = nn.Sequential(convbn_3d(c * 2, c * 2, 3, 1, 1), nn.ReLU(inplace=True))
        up = dict(kernel_size=3, padding=1, output_padding=1, stride=2, bias=False)
        self.conv5 = nn.Sequential(nn.ConvTranspose3d(c * 2, c * 2, **up), nn.BatchNorm3d(c * 2))
        self.conv6 = nn.Sequential(nn.ConvTranspose3d(c * 2, c, **up), nn.BatchNorm3d(c))

    def forward(self, x, presqu, postsqu):
        out = self.conv1(x)
        pre = self.conv2(out)
        pre = F.relu(pre + postsqu, inplace=True) if postsqu is not None else F.relu(pre, inplace=True)
        out = self.conv4(self.conv3(pre))
        post = F.relu(self.conv5(out) + (presqu if presqu is not None else pre), inplace=True)
        return self.conv6(post), pre, post


class PSMNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.feature_extraction = FeatureExtraction()
        relu = lambda: nn.ReLU(inplace=True)
        self.dres0 = nn.Sequential(convbn_3d(64, 32, 3, 1, 1), relu(), convbn_3d(32, 32, 3, 1, 1), relu())
        self.dres1 = nn.Sequential(convbn_3d(32, 32, 3, 1, 1), relu(), convbn_3d(32, 32, 3, 1, 1))
        self.hourglasses = nn.ModuleList(Hourglass(32) for _ in range(3))
        self.classif = nn.ModuleList(
            nn.Sequential(convbn_3d(32, 32, 3, 1, 1), relu(), nn.Conv3d(32, 1, 3, padding=1, bias=False)) for _ in range(3)
        )

    def regress(self, cost, size):
        cost = F.interpolate(cost, [MAXDISP, *size], mode="trilinear", align_corners=True)
        p = F.softmax(torch.squeeze(cost, 1), dim=1)
        return torch.sum(p * torch.arange(MAXDISP, device=p.device, dtype=p.dtype).view(1, -1, 1, 1), 1)

    def forward(self, left, right):
        ref, tgt = self.feature_extraction(left), self.feature_extraction(right)
        b, c, h, w = ref.size()
        cost = torch.zeros(b, c * 2, MAXDISP // 4, h, w, device=ref.device)
        for i in range(MAXDISP // 4):
            if i > 0:
                cost[:, :c, i, :, i:] = ref[:, :, :, i:]
                cost[:, c:, i, :, i:] = tgt[:, :, :, :-i]
            else:
                cost[:, :c, i], cost[:, c:, i] = ref, tgt
        cost0 = self.dres0(cost.contiguous())
        cost0 = self.dres1(cost0) + cost0
        out1, pre1, post1 = self.hourglasses[0](cost0, None, None)
        out1 = out1 + cost0
        out2, _, post2 = self.hourglasses[1](out1, pre1, post1)
        out2 = out2 + cost0
        out3, _, _ = self.hourglasses[2](out2, pre1, post2)
        out3 = out3 + cost0
        cost1 = self.classif[0](out1)
        cost2 = self.classif[1](out2) + cost1
        cost3 = self.classif[2](out3) + cost2
        pred3 = self.regress(cost3, left.shape[2:])
        return (self.regress(cost1, left.shape[2:]), self.regress(cost2, left.shape[2:]), pred3) if self.training else pred3


torch.manual_seed(0)
model = nn.DataParallel(PSMNet(), device_ids=[0]).cuda()
print(f"Number of model parameters: {sum(p.data.nelement() for p in model.parameters())}")
optimizer = torch.optim.Adam(model.parameters(), lr=0.001, betas=(0.9, 0.999))
for batch_idx in range(4):
    model.train()
    imgL, imgR = torch.rand(BATCH, 3, HEIGHT, WIDTH), torch.rand(BATCH, 3, HEIGHT, WIDTH)
    disp = torch.rand(BATCH, HEIGHT, WIDTH) * 250
    imgL, imgR, disp_true = imgL.cuda(), imgR.cuda(), disp.cuda()
    mask = disp_true < MAXDISP
    mask.detach_()
    optimizer.zero_grad()
    outputs = model(imgL, imgR)
    loss = sum(w * F.smooth_l1_loss(o[mask], disp_true[mask]) for w, o in zip((0.5, 0.7, 1.0), outputs))
    loss.backward()
    optimizer.step()
    print("Iter %d training loss = %.3f" % (batch_idx, loss.data), flush=True)
model.eval()
imgL, imgR = torch.rand(1, 3, 370, 1226).cuda(), torch.rand(1, 3, 370, 1226).cuda()
top, right = (-370) % 64, (-1226) % 64
with torch.no_grad():
    out = model(F.pad(imgL, (0, right, top, 0)), F.pad(imgR, (0, right, top, 0)))[:, top:, :-right]
print(out.shape, "3-px error", (out.cpu() > 3).float().mean().item())
