"""A data set in the format of COCO, with images drawn on the fly."""

import random

import torch
from torch.utils.data import Dataset


def make_annotations(num_images, num_classes, seed=0):
    """The dictionary that instances_train.json would hold."""
    draw = random.Random(seed)
    images, annotations = [], []
    for image_id in range(num_images):
        height, width = draw.choice([(240, 320), (256, 256), (320, 240)])
        images.append({"id": image_id, "height": height, "width": width, "file_name": f"{image_id:012}.jpg"})
        for _ in range(draw.randint(1, 6)):
            w, h = draw.randint(20, width // 2), draw.randint(20, height // 2)
            box = [draw.randint(0, width - w), draw.randint(0, height - h), w, h]
            annotations.append(
                {
                    "id": len(annotations),
                    "image_id": image_id,
                    "category_id": draw.randint(1, num_classes - 1),
                    "bbox": box,
                    "area": w * h,
                    "iscrowd": 0,
                }
            )
    return {"images": images, "annotations": annotations}


class CocoLike(Dataset):
    """Images (3, height, width) with their targets."""

    def __init__(self, annotations, transforms=None):
        self.images = annotations["images"]
        self.annotations = {image["id"]: [] for image in self.images}
        for annotation in annotations["annotations"]:
            self.annotations[annotation["image_id"]].append(annotation)
        self.transforms = transforms

    def __len__(self):
        return len(self.images)

    def __getitem__(self, index):
        image = self.images[index]
        annotations = self.annotations[image["id"]]
        boxes = torch.tensor([a["bbox"] for a in annotations], dtype=torch.float32)
        boxes[:, 2:] += boxes[:, :2]
        target = {
            "boxes": boxes,
            "labels": torch.tensor([a["category_id"] for a in annotations]),
            "image_id": image["id"],
            "area": torch.tensor([float(a["area"]) for a in annotations]),
            "iscrowd": torch.tensor([a["iscrowd"] for a in annotations]),
        }
        pixels = torch.rand(3, image["height"], image["width"])
        return self.transforms(pixels, target) if self.transforms else (pixels, target)


class RandomHorizontalFlip:
    """Turns an image and its boxes around, half of the time."""

    def __call__(self, image, target):
        if torch.rand(1) < 0.5:
            width = image.shape[-1]
            image = image.flip(-1)
            target["boxes"][:, [0, 2]] = width - target["boxes"][:, [2, 0]]
        return image, target
