#pragma once

#include <cstddef>
#include <functional>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "unmoor/runtime/runner.h"

namespace unmoor {

// What crosses between a worker and its parent: a JSON object, sent as CBOR so that names need not be UTF-8, and bytes that it refers to.
// Only .cpp files of the worker include this.
struct Message {
  nlohmann::json head;
  std::vector<std::byte> bytes;
};

// Reads exactly as many bytes as the span has; false at the end.
using ReadBytes = std::function<bool(std::span<std::byte>)>;
using WriteBytes = std::function<bool(std::span<const std::byte>)>;

// False if the other side has gone. Fails with Device on bytes that are no message.
bool read_message(const ReadBytes& read, Message& message);
bool write_message(const WriteBytes& write, const Message& message);

// Values as JSON that points into the message's bytes.
nlohmann::json pack(const Data& data, std::vector<std::byte>& bytes);
nlohmann::json pack(const NamedData& data, std::vector<std::byte>& bytes);
Data unpack(const nlohmann::json& packed, std::span<const std::byte> bytes);
NamedData unpack_named(const nlohmann::json& packed, std::span<const std::byte> bytes);

nlohmann::json to_json(const Type& type);
Type type_from(const nlohmann::json& json);
nlohmann::json to_json(const ValueInfo& info);
ValueInfo value_info_from(const nlohmann::json& json);
nlohmann::json to_json(const PlanInfo& info);
PlanInfo plan_info_from(const nlohmann::json& json);

}  // namespace unmoor
