#include "unmoor/base/error.h"
#include "unmoor/formats/onnx/fingerprint.h"
#include "unmoor/formats/onnx/import.h"
#include "unmoor/formats/onnx/onnx.h"

namespace unmoor {
namespace {

std::string_view text_of(const MappedFile& file) {
  return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
}

Model read(const std::shared_ptr<const MappedFile>& file) {
  onnx::TensorReader tensors(file);
  onnx::ModelDef def = onnx::parse_model(text_of(*file), tensors);
  Model model;
  model.path = file->path();
  model.graph = onnx::import_graph(def);
  model.fingerprint = onnx::fingerprint(tensors);
  model.ir_version = def.ir_version;
  model.producer = std::move(def.producer);
  model.opsets = std::move(def.opsets);
  model.metadata = std::move(def.metadata);
  for (const auto& [location, weights] : tensors.external()) weights.file->advise_normal();
  return model;
}

}  // namespace

Model read_onnx(const std::string& path) {
  const auto file = MappedFile::open(path);
  // Parsing jumps over the weights: reading ahead would fetch them.
  file->advise_random();
  try {
    Model model = read(file);
    file->advise_normal();
    return model;
  } catch (Error& error) {
    // What a model's content makes impossible is the model's fault, wherever it was noticed.
    if (error.kind() == ErrorKind::InvalidArgument) {
      fail(ErrorKind::InvalidModel, error.what(), "\n  in model '", path, "'");
    }
    error.note(cat("in model '", path, "'"));
    throw;
  }
}

}  // namespace unmoor
