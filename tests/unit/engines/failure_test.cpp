#include "unmoor/engines/failure.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace unmoor {
namespace {

using testing::HasSubstr;
using testing::Not;

// A message as the engine writes it, and what must be read from it. Those of ONNX Runtime and PyTorch were recorded from 1.32
// and 2.13; those of devices that are not here are in the style of their projects, not recorded.
struct Row {
  const char* name;
  const char* message;
  FailureReading read;  // `remedy`: a part of it.
};

const Row rows[] = {
    {"newer_file",
     "[ONNXRuntimeError] : 1 : FAIL : /onnxruntime_src/onnxruntime/core/graph/model.cc:256 "
     "onnxruntime::Model::Model(onnx::ModelProto&&, "
     "const onnxruntime::ModelOptions&) Unsupported model IR version: 99, max supported IR version: 14\n",
     {"", "", "", "", "older IR version"}},
    {"newer_opset",
     "[ONNXRuntimeError] : 1 : FAIL : ONNX Runtime only *guarantees* support for models stamped with official released onnx "
     "opset versions. "
     "Opset 40 is under development and support for this is limited.",
     {"", "", "", "", "older opset"}},
    {"unknown_operator",
     "[ONNXRuntimeError] : 10 : INVALID_GRAPH : This is an invalid model. In Node, (\"layer1\", Foo, \"\", -1) : (\"x\": "
     "tensor(float),) -> "
     "(\"y\": tensor(float),) , Error No Op registered for Foo with domain_version of 20",
     {"Foo", "layer1", "", "", "older opset"}},
    {"unknown_domain",
     "[ONNXRuntimeError] : 1 : FAIL : Fatal error: com.acme:Foo(-1) is not a registered function/op",
     {"com.acme:Foo", "", "", "", "another domain"}},
    {"type_of_schema",
     "[ONNXRuntimeError] : 10 : INVALID_GRAPH : This is an invalid model. Type Error: Type 'tensor(string)' of input parameter "
     "(x) of operator "
     "(Relu) in node (layer1) is invalid.",
     {"Relu", "layer1", "tensor(string)", "", "cast its input"}},
    {"no_kernel",
     "[ONNXRuntimeError] : 9 : NOT_IMPLEMENTED : Could not find an implementation for Erf(13) node with name 'layer1'",
     {"Erf", "layer1", "", "", "expansion into simpler ones"}},
    {"input_type",
     "[ONNXRuntimeError] : 2 : INVALID_ARGUMENT : Unexpected input data type. Actual: (tensor(double)) , expected: "
     "(tensor(float))",
     {"", "", "tensor(double)", "", "the type that the model declares"}},
    {"input_shape",
     "[ONNXRuntimeError] : 2 : INVALID_ARGUMENT : Got invalid dimensions for input: x for the following indices\n index: 0 Got: "
     "4 Expected: 2\n "
     "Please fix either the inputs/outputs or the model.",
     {"", "", "", "x for the following indices\n index: 0 Got: 4 Expected: 2", "--shapes"}},
    {"no_fallback",
     "[ONNXRuntimeError] : 1 : FAIL : This session contains graph nodes that are assigned to the default CPU EP, but fallback to "
     "CPU EP has been "
     "explicitly disabled by the user.",
     {"", "", "", "", "--fallback report"}},
    {"cuda_memory",
     "CUDA out of memory. Tried to allocate 20.00 MiB. GPU 0 has a total capacity of 10 GiB",
     {"", "", "", "", "smaller batch"}},
    {"arena_memory",
     "[ONNXRuntimeError] : 6 : RUNTIME_EXCEPTION : Failed to allocate memory for requested buffer of size 4294967296",
     {"", "", "", "", "smaller batch"}},
    {"missing_library",
     "Failed to load library libonnxruntime_providers_cuda.so with error: libcublasLt.so.12: cannot open shared object file: No "
     "such file or directory",
     {"", "", "", "", "vendor's library"}},
    {"failed_node",
     "[ONNXRuntimeError] : 1 : FAIL : Non-zero status code returned while running MatMul node. Name:'mm' Status Message: "
     "matmul_helper.h:59 Compute "
     "MatMul dimension mismatch",
     {"MatMul", "mm", "", "", "ort.optimize=off"}},
    {"external_data",
     "[ONNXRuntimeError] : 1 : FAIL : External data path does not exist: model.onnx.data",
     {"", "", "", "", "beside the model"}},
    {"no_float64",
     "Cannot convert a MPS Tensor to float64 dtype as the MPS framework doesn't support float64. Please use float32 instead.",
     {"", "", "float64", "", "export the model in float32"}},
    {"no_build", "Torch not compiled with CUDA enabled", {"", "", "", "", "its build for the device"}},
    {"no_plugin_kernel",
     "Could not run 'aten::_fft_r2c' with arguments from the 'NPU' backend.",
     {"aten::_fft_r2c", "", "", "", "newer plug-in"}},
    {"no_mps_kernel",
     "The operator 'aten::linalg_qr' is not currently implemented for the MPS device.",
     {"aten::linalg_qr", "", "", "", "newer plug-in"}},
    {"no_ascend_kernel",
     "EZ3003: No supported Ops kernel and engine are found for [Einsum_12], optype [Einsum].",
     {"Einsum", "Einsum_12", "", "", "newer plug-in"}},
    {"half", "\"slow_conv2d_cpu\" not implemented for 'Half'", {"slow_conv2d_cpu", "", "Half", "", "in float32"}},
    {"low_precision", "linalg.inv: Low precision dtypes not supported. Got Half", {"", "", "Half", "", "in float32"}},
    {"integer", "\"GeluKernelImpl\" not implemented for 'Int'", {"GeluKernelImpl", "", "Int", "", "cast the input"}},
    {"mixed_types", "mat1 and mat2 must have the same dtype, but got Half and Float", {"", "", "Half", "", "both are the same"}},
    {"scalar_type", "expected scalar type Half but found Float", {"", "", "Float", "", "both are the same"}},
    {"two_devices",
     "Expected all tensors to be on the same device, but found at least two devices, cpu and cuda:0!",
     {"", "", "", "", "made in forward()"}},
    {"other_device", "Tensor on device meta is not on the expected device cpu!", {"", "", "", "", "made in forward()"}},
    {"product_shapes", "mat1 and mat2 shapes cannot be multiplied (2x5 and 3x4)", {"", "", "", "2x5 and 3x4", "--shapes"}},
    {"view_shape",
     "shape '[4, 2]' is invalid for input of size 6\n\nWhile executing %view_3 : [num_users=1]",
     {"", "view_3", "", "[4, 2]", "--shapes"}},
    {"sum_shapes",
     "The size of tensor a (6) must match the size of tensor b (4) at non-singleton dimension 0",
     {"", "", "", "", "--shapes"}},
    {"compiler", "torch._inductor.exc.InductorError: CppCompileError: C++ compile error", {"", "", "", "", "torch.compile=off"}},
};

class Failure : public testing::TestWithParam<Row> {};

TEST_P(Failure, is_read) {
  const FailureReading found = read_failure(GetParam().message);
  const FailureReading& wanted = GetParam().read;
  EXPECT_EQ(found.op, wanted.op);
  EXPECT_EQ(found.layer, wanted.layer);
  EXPECT_EQ(found.dtype, wanted.dtype);
  EXPECT_EQ(found.shape, wanted.shape);
  EXPECT_THAT(found.remedy, HasSubstr(wanted.remedy));
}

INSTANTIATE_TEST_SUITE_P(Messages, Failure, testing::ValuesIn(rows), [](const auto& row) { return std::string(row.param.name); });

TEST(FailureText, has_the_message_the_place_and_the_remedy_without_the_engines_own_paths) {
  const std::string text = explained_failure(rows[0].message);
  EXPECT_EQ(text.find("FAIL : Unsupported model IR version: 99"), 0U) << text;
  EXPECT_THAT(text, HasSubstr("what usually helps: "));
  EXPECT_THAT(text, Not(HasSubstr("onnxruntime_src")));
  EXPECT_THAT(explained_failure(rows[5].message), HasSubstr("(operator Erf, node 'layer1')"));
}

TEST(FailureText, says_nothing_of_its_own_where_nothing_can_be_read) {
  EXPECT_EQ(explained_failure("something  else\nhappened"), "something else happened");
  EXPECT_EQ(explained_failure(""), "");
  EXPECT_LT(explained_failure(std::string(1 << 20, 'x')).size(), 2000U);
}

}  // namespace
}  // namespace unmoor
