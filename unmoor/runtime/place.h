#pragma once

#include <memory>
#include <string>
#include <vector>

#include "unmoor/runtime/plan.h"

namespace unmoor {

// A device's answer to a call: the first kernel that says yes, or null, and everyone who said no before.
struct Choice {
  const Kernel* kernel = nullptr;
  std::vector<Refusal> refusals = {};
};
// `only` forces kernels of that name for operators that have one.
Choice choose_kernel(const OpCall& call, const Device& device, const std::string& only);
// Whether a kernel of the device, other than the generic one, takes the call.
bool has_own_kernel(const OpCall& call, const Device& device);
// Fails with OutOfMemory if one output alone passes the memory limit. To be asked before a kernel is prepared for host memory: what it
// prepares may be as large.
void require_memory(const OpCall& call);

bool is_control_flow(const Node& node);  // If, Loop, Scan, or a search for tokens.
bool is_shape_arithmetic(const OpCall& call);  // Shape and Size, and what works on a few integers only.
// All tensors with known shapes: what a kernel with buffers needs.
bool has_known_types(const OpCall& call);

// A graph, perhaps with nodes expanded, and where each node is to run.
struct PlacedGraph {
  Graph graph;
  std::vector<Placement> placements;
};
// Asks each device in order: a kernel on the wanted device, its expansion there, its generic kernel, then the next device. Then leaves supported
// nodes with their fallen-back neighbours where that saves copies. Fails with Unsupported on operators that nobody knows and,
// under Forbid, on every node that the first device refused, all listed.
PlacedGraph place(Graph graph, const std::vector<std::shared_ptr<Device>>& devices, const PlanOptions& options);

}  // namespace unmoor
