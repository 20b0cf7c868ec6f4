#pragma once

#include <map>
#include <string>

#include "unmoor/tensor/tensor.h"

namespace unmoor {

// NumPy's .npy, versions 1 to 3, C or Fortran order, either byte order; strings as <U and |S. Types that NumPy lacks are written
// as unsigned integers of their width, those under a byte in a byte each. Reading fails with Io, with InvalidModel on a broken file,
// with Unsupported on Python objects and structures; writing with Io. Any thread.
Tensor read_npy(const std::string& path);
void write_npy(const Tensor& tensor, const std::string& path);

// .npz: a zip of .npy files, stored or deflated. Names without the suffix. Fails likewise.
std::map<std::string, Tensor, std::less<>> read_npz(const std::string& path);
void write_npz(const std::map<std::string, Tensor, std::less<>>& tensors, const std::string& path);

}  // namespace unmoor
