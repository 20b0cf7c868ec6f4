"""Answers of PyTorch and SciPy: Fourier transforms and windows."""
import scipy.signal
import torch


def dft(call):
    x, size = call[0], call.whole(1, [None])[0]
    axis = call.whole(2, [call("axis", -2)])[0]
    axis = axis % x.dim()
    spectrum = x.shape[-1] == 2
    if call("inverse") and call("onesided"):
        result = torch.fft.irfft(torch.view_as_complex(x.contiguous()), n=size, dim=axis)
        return result.unsqueeze(-1)
    numbers = torch.view_as_complex(x.contiguous()) if spectrum else x.squeeze(-1)
    if call("inverse"):
        return torch.view_as_real(torch.fft.ifft(numbers, n=size, dim=axis))
    result = torch.fft.fft(numbers, n=size, dim=axis)
    if call("onesided"):
        result = result.narrow(axis, 0, (size or x.shape[axis]) // 2 + 1)
    return torch.view_as_real(result.resolve_conj())


def stft(call):
    x, step = call[0], call.whole(1)[0]
    window = call[2]
    size = call.whole(3)[0] if call[3] is not None else window.numel()
    x = torch.view_as_complex(x.contiguous()) if x.shape[-1] == 2 else x.squeeze(-1) if x.dim() == 3 else x
    onesided = bool(call("onesided")) and not x.is_complex()
    window = torch.ones(size, dtype=torch.float64) if window is None else window
    if window.numel() != size:
        raise ValueError("PyTorch centres a short window")
    result = torch.stft(x, size, step, size, window, center=False, onesided=onesided, return_complex=True)
    return torch.view_as_real(result.transpose(-1, -2).contiguous())


def window(coefficients):
    def of(call):
        if call("output_datatype") not in (1, 10, 11, 16):
            raise ValueError("a window of integers")
        return scipy.signal.windows.general_cosine(call.whole(0)[0], coefficients, sym=not call("periodic"))
    return of


ANSWERS = {
    "DFT": dft, "STFT": stft, "HannWindow": window([0.5, 0.5]), "HammingWindow": window([25 / 46, 21 / 46]),
    "BlackmanWindow": window([0.42, 0.5, 0.08]),
}
BY_SCIPY = {"HannWindow", "HammingWindow", "BlackmanWindow"}
