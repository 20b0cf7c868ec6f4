#include "unmoor/runtime/wire.h"

#include <array>
#include <cstring>

#include "unmoor/base/error.h"

namespace unmoor {
namespace {

using nlohmann::json;

constexpr uint32_t magic = 0x324D4E55;                    // "UNM2"
constexpr uint32_t head_limit = uint32_t{1} << 30;        // A head is names and numbers.
constexpr uint64_t payload_limit = uint64_t{1} << 40;

struct Frame {
  uint32_t magic;
  uint32_t head_bytes;
  uint64_t payload_bytes;
};

void append(std::vector<std::byte>& bytes, const void* from, size_t count) {
  const auto* start = static_cast<const std::byte*>(from);
  bytes.insert(bytes.end(), start, start + count);
}

std::span<const std::byte> part(std::span<const std::byte> bytes, size_t offset, size_t count) {
  if (offset > bytes.size() || count > bytes.size() - offset) fail(ErrorKind::Device, "a message of a worker points outside of itself");
  return bytes.subspan(offset, count);
}

std::vector<std::string> unpack_strings(std::span<const std::byte> bytes, size_t count) {
  std::vector<std::string> strings;
  size_t at = 0;
  for (size_t i = 0; i < count; ++i) {
    uint64_t length = 0;
    std::memcpy(&length, part(bytes, at, sizeof length).data(), sizeof length);
    at += sizeof length;
    const auto text = part(bytes, at, length);
    strings.emplace_back(reinterpret_cast<const char*>(text.data()), text.size());
    at += length;
  }
  return strings;
}

json pack_tensor(const Tensor& tensor, std::vector<std::byte>& bytes) {
  const size_t offset = bytes.size();
  if (tensor.dtype() == DType::String) {
    for (const auto& text : tensor.strings()) {
      const uint64_t length = text.size();
      append(bytes, &length, sizeof length);
      append(bytes, text.data(), text.size());
    }
  } else {
    append(bytes, tensor.bytes().data(), tensor.bytes().size());
  }
  return {{"dtype", name(tensor.dtype())}, {"shape", tensor.shape().dims()}, {"at", offset}, {"size", bytes.size() - offset}};
}

Tensor unpack_tensor(const json& packed, std::span<const std::byte> bytes) {
  const auto dtype = dtype_named(packed.at("dtype").get<std::string>());
  if (!dtype) fail(ErrorKind::Device, "a worker sent a tensor of an unknown type");
  const auto from = part(bytes, packed.at("at").get<size_t>(), packed.at("size").get<size_t>());
  const TensorType type{*dtype, Shape(packed.at("shape").get<std::vector<int64_t>>())};
  if (*dtype == DType::String) return Tensor::of_strings(type.shape, unpack_strings(from, static_cast<size_t>(type.shape.elements())));
  if (type.bytes() != from.size()) fail(ErrorKind::Device, "a worker sent ", from.size(), " bytes for a tensor of ", type);
  Tensor tensor(type);
  if (!from.empty()) std::memcpy(tensor.writable_bytes().data(), from.data(), from.size());
  return tensor;
}

}  // namespace

bool read_message(const ReadBytes& read, Message& message) {
  Frame frame{};
  if (!read(std::as_writable_bytes(std::span(&frame, 1)))) return false;
  if (frame.magic != magic || frame.head_bytes > head_limit || frame.payload_bytes > payload_limit) {
    fail(ErrorKind::Device, "a worker sent something that is no message");
  }
  std::vector<uint8_t> head(frame.head_bytes);
  if (!read(std::as_writable_bytes(std::span(head)))) return false;
  message.bytes.resize(frame.payload_bytes);
  if (!read(message.bytes)) return false;
  message.head = json::from_cbor(head, true, false);
  if (!message.head.is_object()) fail(ErrorKind::Device, "a worker sent something that is no message");
  return true;
}

bool write_message(const WriteBytes& write, const Message& message) {
  const std::vector<uint8_t> head = json::to_cbor(message.head);
  if (head.size() > head_limit) fail(ErrorKind::Device, "a message of ", head.size(), " bytes without its values is too long");
  const Frame frame{magic, static_cast<uint32_t>(head.size()), message.bytes.size()};
  return write(std::as_bytes(std::span(&frame, 1))) && write(std::as_bytes(std::span(head))) && write(message.bytes);
}

json pack(const Data& data, std::vector<std::byte>& bytes) {
  if (data.is_tensor()) return pack_tensor(data.tensor(), bytes);
  if (data.is_map()) {
    json values = json::array();
    for (const Data& value : data.map().values) values.push_back(pack(value, bytes));
    return {{"keys", pack_tensor(data.map().keys, bytes)}, {"values", values}};
  }
  if (!data) return nullptr;
  json items = json::array();
  for (const Data& item : data.sequence().items) items.push_back(pack(item, bytes));
  return {{"items", items}};
}

json pack(const NamedData& data, std::vector<std::byte>& bytes) {
  json names = json::array();
  json values = json::array();
  for (const auto& [name, value] : data) {
    names.push_back(name);
    values.push_back(pack(value, bytes));
  }
  return {{"names", names}, {"values", values}};
}

Data unpack(const json& packed, std::span<const std::byte> bytes) {
  if (packed.is_null()) return {};
  if (packed.contains("dtype")) return unpack_tensor(packed, bytes);
  if (packed.contains("keys")) {
    Map map{unpack_tensor(packed.at("keys"), bytes), {}};
    for (const auto& value : packed.at("values")) map.values.push_back(unpack(value, bytes));
    return map;
  }
  Sequence sequence;
  for (const auto& item : packed.at("items")) sequence.items.push_back(unpack(item, bytes));
  return sequence;
}

NamedData unpack_named(const json& packed, std::span<const std::byte> bytes) {
  NamedData data;
  const auto& names = packed.at("names");
  for (size_t i = 0; i < names.size(); ++i) data[names[i].get<std::string>()] = unpack(packed.at("values").at(i), bytes);
  return data;
}

json to_json(const Type& type) {
  if (const auto* tensor = std::get_if<TensorType>(&type)) {
    json shape = nullptr;
    if (tensor->shape.has_rank()) {
      shape = json::array();
      for (size_t i = 0; i < tensor->shape.rank(); ++i) {
        if (tensor->shape[i] >= 0) {
          shape.push_back(tensor->shape[i]);
        } else {
          shape.push_back(tensor->shape.symbol(i));
        }
      }
    }
    return {{"dtype", name(tensor->dtype)}, {"shape", shape}};
  }
  return {{"kind", type.index()}};
}

Type type_from(const json& json_type) {
  if (!json_type.contains("dtype")) {
    switch (json_type.at("kind").get<size_t>()) {
      case 1: return SequenceType{};
      case 2: return OptionalType{};
      default: return MapType{};
    }
  }
  const auto dtype = dtype_named(json_type.at("dtype").get<std::string>());
  const auto& dims = json_type.at("shape");
  if (dims.is_null()) return TensorType{dtype.value_or(DType::F32), Shape::of_unknown_rank()};
  Shape shape;
  for (const auto& dim : dims) {
    shape.push_back(dim.is_number() ? dim.get<int64_t>() : Shape::unknown);
    if (dim.is_string() && !dim.get<std::string>().empty()) shape.set_symbol(shape.rank() - 1, dim.get<std::string>());
  }
  return TensorType{dtype.value_or(DType::F32), shape};
}

json to_json(const ValueInfo& info) {
  return {{"name", info.name}, {"type", to_json(info.type)}, {"node", info.node}, {"op", info.op}};
}

ValueInfo value_info_from(const json& from) {
  return {from.at("name"), type_from(from.at("type")), from.at("node"), from.at("op")};
}

namespace {

json to_json(const std::vector<PlacementInfo::Refused>& list) {
  json result = json::array();
  for (const auto& refused : list) {
    result.push_back({{"device", refused.device}, {"kernel", refused.kernel}, {"reason", refused.reason}, {"detail", refused.detail}});
  }
  return result;
}

std::vector<PlacementInfo::Refused> refused_from(const json& from) {
  std::vector<PlacementInfo::Refused> result;
  for (const auto& refused : from) result.push_back({refused.at("device"), refused.at("kernel"), refused.at("reason"), refused.at("detail")});
  return result;
}

}  // namespace

json to_json(const PlanInfo& info) {
  json placements = json::array();
  for (const auto& placed : info.placements) {
    placements.push_back({{"node", placed.node}, {"op", placed.op}, {"device", placed.device}, {"kernel", placed.kernel},
                          {"state", placed.state}, {"refusals", to_json(placed.refusals)}, {"later", to_json(placed.later)}, {"also", placed.also}, {"category", placed.category}});
  }
  json copies = json::array();
  for (const auto& copy : info.copies) {
    copies.push_back({{"value", copy.value}, {"before", copy.before}, {"from", copy.from}, {"to", copy.to}, {"bytes", copy.bytes}});
  }
  json left = json::array();
  for (const auto& each : info.left_narrow) left.push_back({{"node", each.node}, {"reason", each.reason}});
  return {{"kept_float32", info.kept_float32}, {"left_narrow", std::move(left)}, {"devices", info.devices}, {"versions", info.versions}, {"placements", placements}, {"copies", copies}, {"fallback_nodes", info.fallback_nodes},
          {"summary", info.fallback_summary}, {"notes", info.notes}};
}

PlanInfo plan_info_from(const json& from) {
  PlanInfo info;
  info.devices = from.at("devices").get<std::vector<std::string>>();
  info.versions = from.at("versions").get<std::vector<std::map<std::string, std::string>>>();
  for (const auto& item : from.at("placements")) {
    PlacementInfo placed{item.at("node"), item.at("op"), item.at("device"), item.at("kernel"), item.at("state")};
    placed.refusals = refused_from(item.at("refusals"));
    placed.later = refused_from(item.at("later"));
    placed.also = item.at("also").get<std::vector<std::string>>();
    placed.category = item.at("category");
    info.placements.push_back(std::move(placed));
  }
  for (const auto& copy : from.at("copies")) {
    info.copies.push_back({copy.at("value"), copy.at("before"), copy.at("from"), copy.at("to"), copy.at("bytes")});
  }
  info.kept_float32 = from.at("kept_float32").get<NodeNames>();
  for (const auto& each : from.at("left_narrow")) info.left_narrow.push_back({each.at("node"), each.at("reason")});
  info.fallback_nodes = from.at("fallback_nodes");
  info.fallback_summary = from.at("summary");
  info.notes = from.at("notes").get<std::vector<std::string>>();
  return info;
}

}  // namespace unmoor
