"""diffusers: a pipeline whose parts wait on the CPU, and which finds the device by itself."""

import torch
from diffusers import DDPMPipeline, DDPMScheduler, UNet2DModel


def run(device):
    torch.manual_seed(0)
    unet = UNet2DModel(
        sample_size=8,
        in_channels=1,
        out_channels=1,
        block_out_channels=(8, 16),
        norm_num_groups=4,
        layers_per_block=1,
        down_block_types=("DownBlock2D", "AttnDownBlock2D"),
        up_block_types=("AttnUpBlock2D", "UpBlock2D"),
        attention_head_dim=4,
    ).eval()
    pipeline = DDPMPipeline(unet, DDPMScheduler(num_train_timesteps=10))
    pipeline.set_progress_bar_config(disable=True)
    if device != "cpu":
        pipeline.enable_model_cpu_offload()
    generator = torch.Generator().manual_seed(1)
    return torch.as_tensor(pipeline(num_inference_steps=2, generator=generator, output_type="np").images)
