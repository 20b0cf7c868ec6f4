"""Nets of images, as the papers have them, from transformers."""
import transformers

import architectures


def resnet50():
    config = transformers.ResNetConfig(num_labels=1000)
    return architectures.vision(transformers.ResNetForImageClassification(config), 1, 224, 224)


def mobilenet_v2():
    config = transformers.MobileNetV2Config(num_labels=1000, tf_padding=False)
    return architectures.vision(transformers.MobileNetV2ForImageClassification(config), 2, 224, 224)


def convnext_t():
    config = transformers.ConvNextConfig(num_labels=1000)
    return architectures.vision(transformers.ConvNextForImageClassification(config), 3, 224, 224)


def vit_b16():
    config = transformers.ViTConfig(num_labels=1000)
    return architectures.vision(transformers.ViTForImageClassification(config), 4, 224, 224)


def swin_t():
    config = transformers.SwinConfig(num_labels=1000)
    return architectures.vision(transformers.SwinForImageClassification(config), 7, 224, 224)


def segformer_b0():
    config = transformers.SegformerConfig(num_labels=150)
    return architectures.vision(transformers.SegformerForSemanticSegmentation(config), 8, 512, 512, batch=2)


def detr_r50():
    backbone = transformers.ResNetConfig(out_features=["stage4"])
    config = transformers.DetrConfig(use_timm_backbone=False, use_pretrained_backbone=False, backbone=None, backbone_config=backbone,
                                     num_labels=91)
    net = transformers.DetrForObjectDetection(config)
    return architectures.vision(net, 9, 480, 640, ("logits", "pred_boxes"), batch=2)


def yolos_tiny():
    config = transformers.YolosConfig(hidden_size=192, num_hidden_layers=12, num_attention_heads=3, intermediate_size=768, num_labels=91,
                                      image_size=[512, 512], use_mid_position_embeddings=False)
    net = transformers.YolosForObjectDetection(config)
    return architectures.vision(net, 10, 512, 512, ("logits", "pred_boxes"))


MODELS = {"resnet50": resnet50, "mobilenet_v2": mobilenet_v2, "convnext_t": convnext_t, "vit_b16": vit_b16, "swin_t": swin_t,
          "segformer_b0": segformer_b0, "detr_r50": detr_r50, "yolos_tiny": yolos_tiny}
