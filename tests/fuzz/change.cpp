#include "tests/fuzz/change.h"

#include <map>
#include <string_view>
#include <vector>

#include "tests/fuzz/absurd.h"

namespace unmoor::fuzz {
namespace {

// FNV-1a.
uint64_t hash_of(std::string_view text) {
  uint64_t hash = 0xcbf29ce484222325U;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  return hash;
}

// Rendezvous hashing: whatever is added, most numbers go on choosing what they chose.
size_t chosen(uint64_t number, const std::vector<uint64_t>& hashes) {
  size_t best = 0;
  uint64_t most = 0;
  for (size_t i = 0; i < hashes.size(); ++i) {
    const uint64_t weight = mixed(hashes[i] + number * 0x9e3779b97f4a7c15U);
    if (weight > most) most = weight, best = i;
  }
  return best;
}

struct Choice {
  const Op* op = nullptr;
  std::vector<Case> cases = {};
  std::vector<uint64_t> hashes = {};  // Of the cases.
};

Case plain_case(const Op& op) {
  Case result;
  result.op = op.name;
  result.text = op.name;
  for (const Port& port : op.inputs) {
    Case::Input input;
    input.present = port.arity != Arity::Optional;
    input.type = {port.dtypes.empty() ? DType::F32 : port.dtypes[0], Shape{2, 3}};
    result.inputs.push_back(input);
  }
  result.attributes = op.attributes;
  result.outputs = std::max<size_t>(op.outputs.size(), 1);
  return result;
}

const Choice& choice_of(const Op& op) {
  static const std::vector<DType> dtypes{DType::F32, DType::F64, DType::F16, DType::BF16, DType::I8, DType::U8, DType::I32, DType::I64, DType::Bool};
  static std::map<const Op*, Choice> known;
  Choice& choice = known[&op];
  if (choice.op != nullptr) return choice;
  choice = {&op, cases_of(op, dtypes), {}};
  if (choice.cases.empty()) choice.cases.push_back(plain_case(op));
  for (const Case& each : choice.cases) choice.hashes.push_back(hash_of(each.text));
  return choice;
}

void change_attribute(Bytes& bytes, Case& a_case) {
  const Choice& known = choice_of(*all_ops().find(a_case.op));
  const Case& other = known.cases[bytes.below(known.cases.size())];
  std::vector<std::pair<std::string, Attribute>> candidates;
  for (const Attributes& list : {a_case.attributes, known.op->attributes, other.attributes}) {
    for (const auto& each : list) {
      if (each.first != "captures") candidates.emplace_back(each);  // Import sets that one.
    }
  }
  if (candidates.empty()) return;
  const auto& [key, like] = bytes.one_of(candidates);
  const size_t way = bytes.below(8);
  if (way == 0) a_case.attributes.erase(key);
  if (way == 1) a_case.attributes[key] = like;
  if (way > 1) a_case.attributes[key] = absurd_attribute(bytes, like);
}

void change_shape(Bytes& bytes, Case::Input& input) {
  std::vector<int64_t> dims = input.type.shape.dims();
  const size_t axis = dims.empty() ? 0 : bytes.below(dims.size());
  const auto at = dims.begin() + static_cast<std::ptrdiff_t>(axis);
  switch (bytes.below(5)) {
    case 0:
      if (!dims.empty()) *at = absurd_dim(bytes);
      break;
    case 1: dims.insert(at, absurd_dim(bytes)); break;
    case 2:
      if (!dims.empty()) dims.erase(at);
      break;
    case 3: dims.assign(bytes.below(10), absurd_dim(bytes)); break;
    default: dims.clear();
  }
  input.type.shape = Shape(dims);
}

void change_input(Bytes& bytes, Case::Input& input) {
  static const std::vector<std::string> generators{"", "positive", "unit", "special", "mask", "index:3", "signed_index:4", "index:100"};
  switch (bytes.below(7)) {
    case 0: change_shape(bytes, input); break;
    case 1: input.type.dtype = any_dtype(bytes); break;
    case 2: input.present = !input.present; break;
    case 3: input.constant = !input.constant; break;
    case 4: input.generator = bytes.one_of(generators), input.values.clear(), input.texts.clear(); break;
    case 5:
      if (!input.values.empty()) input.values[bytes.below(input.values.size())] = static_cast<double>(absurd_integer(bytes));
      break;
    default: change_shape(bytes, input), change_shape(bytes, input);
  }
}

}  // namespace

Case choose_case(Bytes& bytes) {
  static const auto ops = [] {
    std::vector<std::pair<const Op*, uint64_t>> list;
    for (const auto& [key, op] : all_ops().all()) list.emplace_back(&op, hash_of(key));
    return list;
  }();
  static const auto hashes = [] {
    std::vector<uint64_t> list;
    for (const auto& each : ops) list.push_back(each.second);
    return list;
  }();
  const Choice& choice = choice_of(*ops[chosen(bytes.number(2), hashes)].first);
  return choice.cases[chosen(bytes.number(2), choice.hashes)];
}

void change(Bytes& bytes, Case& a_case) {
  const size_t changes = bytes.below(8);
  for (size_t i = 0; i < changes; ++i) {
    const size_t way = bytes.below(8);
    if (way < 4 && !a_case.inputs.empty()) change_input(bytes, a_case.inputs[bytes.below(a_case.inputs.size())]);
    if (way == 4 || way == 5) change_attribute(bytes, a_case);
    if (way == 6) a_case.outputs = 1 + bytes.below(6);
    if (way < 7 || a_case.inputs.empty()) continue;
    if (bytes.once_in(2)) {
      a_case.inputs.push_back(a_case.inputs[bytes.below(a_case.inputs.size())]);
    } else {
      a_case.inputs.pop_back();
    }
  }
}

}  // namespace unmoor::fuzz
