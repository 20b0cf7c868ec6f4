"""Sound like speech, seeded, for speech models."""
import numpy as np


def syllables(count, rate=16000, seed=1):
    """Syllables of changing pitch, vowel and loudness, hisses, and pauses."""
    draw, parts, made = np.random.default_rng(seed), [], 0
    while made < count:
        length = int(rate * draw.uniform(0.06, 0.3))
        time, kind, loudness = np.arange(length) / rate, draw.random(), 0.02 * 10 ** draw.uniform(0, 1.2)
        sound = np.zeros(length)
        if kind < 0.65:
            pitch = draw.uniform(85, 240)
            phase = 2 * np.pi * np.cumsum(pitch * (1 + draw.uniform(-0.15, 0.15) * time / time[-1])) / rate
            formants = [draw.uniform(*band) for band in ((250, 850), (850, 2400), (2200, 3300))]
            gain = lambda k: sum(1 / (1 + ((k * pitch - f) / (60 + 0.08 * f)) ** 2) for f in formants)
            sound = sum(gain(k) * np.sin(k * phase + k) for k in range(1, int(3800 / pitch)))
        elif kind < 0.85:
            sound = np.diff(draw.standard_normal(length + 1)) / 2
        parts.append(np.sqrt(np.sin(np.pi * np.arange(length) / length)) * loudness * sound + draw.standard_normal(length) * 0.0005)
        made += length
    return np.concatenate(parts)[:count]


def windows(count):
    """What silero-vad-sequence reads: windows of 512 samples and the 64 before each, and its state at the start."""
    sound = syllables(count * 512 + 64)
    state = np.zeros((1, 1, 128), np.float32)
    return {"input": np.stack([sound[i * 512:i * 512 + 576] for i in range(count)]).astype(np.float32), "h": state, "c": state}
