#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>

#include "unmoor/base/error.h"
#include "unmoor/tensor/convert.h"
#include "unmoor/workbench/task/boxes.h"
#include "unmoor/workbench/task/rows.h"

namespace unmoor {
namespace {

constexpr double drop_limit = 0.005;
constexpr double sure = 0.5;  // Boxes of the reference with this score stand for what is right where no labels are.

using Images = std::vector<std::vector<Box>>;

bool holds(const std::string& text, const char* word) { return text.find(word) != std::string::npos; }

// Outputs of a detector behind its own suppression: boxes, scores and classes, with or without a batch, or one output of six numbers
// a box: corners, score, class.
class Detection : public TaskMetric {
 public:
  explicit Detection(std::string output) : output_(std::move(output)) {}

  void add(const TaskSample& sample, const NamedData& reference, const NamedData& target, TaskResult& result) override {
    if (boxes_.empty()) choose(reference);
    const Images ours = images_of(reference);
    const Images theirs = images_of(target);
    if (ours.size() != theirs.size()) fail(ErrorKind::InvalidArgument, "the target has ", theirs.size(), " images in '", sample.name, "', the reference ", ours.size());
    const auto labels = labels_of(sample, ours.size());
    labelled_ = labelled_ || labels.has_value();
    for (size_t i = 0; i < ours.size(); ++i) {
      std::vector<Box> truth;
      if (labels)
        truth = *labels;
      else
        std::ranges::copy_if(ours[i], std::back_inserter(truth), [](const Box& box) { return box.score >= sure; });
      precision_[0].add(ours[i], truth);
      precision_[1].add(theirs[i], truth);
      match(sample.name, i, ours[i], theirs[i], result);
    }
  }

  void finish(TaskResult& result) override {
    result.output = scores_.empty() ? boxes_ : cat(boxes_, ",", scores_, ",", classes_);
    const double before = precision_[0].value();
    const double after = precision_[1].value();
    result.numbers.push_back({"mAP", before, after, {}, -drop_limit, after - before});
    result.numbers.push_back({"boxes that match", {}, {}, matched_.value()});
    result.numbers.push_back({"IoU of those that match", {}, {}, overlap_.value()});
    if (!labelled_) result.notes.push_back(cat("no labels: boxes of the reference with a score of ", sure, " or more stand for what is right"));
  }

 private:
  void choose(const NamedData& outputs) {
    for (const auto& [name, data] : outputs) {
      if (!data.is_tensor() || data.tensor().shape().rank() == 0) continue;
      const Shape& shape = data.tensor().shape();
      const int64_t last = shape[shape.rank() - 1];
      const bool real = is_float(data.tensor().dtype());
      if (!output_.empty() && name != output_) continue;
      if (real && last == 6 && shape.rank() <= 3 && shape.rank() >= 2 && !holds(name, "score")) {
        boxes_ = name;
        scores_.clear();
        return;
      }
      if (real && last == 4 && shape.rank() >= 2 && boxes_.empty()) boxes_ = name;
      else if (real && (holds(name, "score") || scores_.empty()) && !holds(name, "class") && !holds(name, "label")) scores_ = name;
      else if (!real || holds(name, "class") || holds(name, "label")) classes_ = classes_.empty() || holds(name, "class") || holds(name, "label") ? name : classes_;
    }
    if (boxes_.empty() || scores_.empty() || classes_.empty())
      fail_output("detection", outputs, "boxes […,4], scores and classes, or one output […,6] of corners, score and class (after suppression)");
  }

  Images images_of(const NamedData& outputs) const {
    const auto find = [&](const std::string& name) {
      const auto found = outputs.find(name);
      if (found == outputs.end() || !found->second.is_tensor()) fail_output("detection", outputs, cat("the output '", name, "'"));
      return found->second.tensor();
    };
    const Tensor boxes = find(boxes_);
    const size_t rank = boxes.shape().rank();
    const auto images = rank == 3 ? static_cast<size_t>(boxes.shape()[0]) : 1;
    const auto count = static_cast<size_t>(boxes.shape()[rank - 2]);
    const auto numbers = doubles(boxes);
    const size_t width = scores_.empty() ? 6 : 4;
    const auto scores = scores_.empty() ? std::vector<double>() : doubles(find(scores_));
    const auto labels = scores_.empty() ? std::vector<double>() : doubles(find(classes_));
    if (!scores_.empty() && (scores.size() != images * count || labels.size() != images * count))
      fail_output("detection", outputs, cat("a score and a class for each of ", images * count, " boxes"));
    Images result(images);
    for (size_t i = 0; i < images * count; ++i) {
      const double* const box = numbers.data() + i * width;
      const double score = scores_.empty() ? box[4] : scores[i];
      const double label = scores_.empty() ? box[5] : labels[i];
      if (!std::isfinite(label) || !std::isfinite(score)) continue;
      result[i / count].push_back({{box[0], box[1], box[2], box[3]}, static_cast<int64_t>(std::llround(std::clamp(label, -1e9, 1e9))), score});
    }
    return result;
  }

  // 'boxes' [M,4] and 'labels' [M], of one image.
  std::optional<std::vector<Box>> labels_of(const TaskSample& sample, size_t images) const {
    const auto boxes = sample.labels.find("boxes");
    const auto labels = sample.labels.find("labels");
    if (boxes == sample.labels.end() && labels == sample.labels.end()) return std::nullopt;
    const bool there = boxes != sample.labels.end() && labels != sample.labels.end() && boxes->second.is_tensor() && labels->second.is_tensor();
    if (!there || images != 1 || boxes->second.tensor().elements() != 4 * labels->second.tensor().elements())
      fail(ErrorKind::InvalidArgument, "what is right of '", sample.name, "' is an array 'boxes' [M,4] and one 'labels' [M], of one image; there is ", described(sample.labels));
    const auto corners = doubles(boxes->second.tensor());
    const auto classes = integers(labels->second.tensor());
    std::vector<Box> result;
    for (size_t i = 0; i < classes.size(); ++i) result.push_back({{corners[4 * i], corners[4 * i + 1], corners[4 * i + 2], corners[4 * i + 3]}, classes[i], 1});
    return result;
  }

  // The box that overlaps most, by half or more, of those not taken; of this class only, if one is given.
  static size_t nearest(const Box& box, const std::vector<Box>& among, const std::vector<bool>& taken, std::optional<int64_t> label) {
    size_t found = among.size();
    double most = 0.5;
    for (size_t i = 0; i < among.size(); ++i) {
      if (taken[i] || (label && among[i].label != *label)) continue;
      const double overlap = overlap_of(box, among[i]);
      if (overlap < most || (found < among.size() && overlap == most)) continue;
      most = overlap;
      found = i;
    }
    return found;
  }

  // Boxes of the reference that are sure: the target's nearest of the same class, each met once; else what is there of another.
  void match(const std::string& sample, size_t image, const std::vector<Box>& ours, const std::vector<Box>& theirs, TaskResult& result) {
    std::vector<bool> taken(theirs.size());
    for (const Box& box : ours) {
      if (box.score < sure) continue;
      size_t at = nearest(box, theirs, taken, box.label);
      if (at == theirs.size()) at = nearest(box, theirs, taken, std::nullopt);
      const Box* const met = at == theirs.size() ? nullptr : &theirs[at];
      const bool same = met != nullptr && met->label == box.label && met->score >= sure;
      if (same) taken[at] = true;
      ++result.answers;
      result.margins.add(box.score - sure);
      matched_.add(same ? 1 : 0);
      if (met != nullptr) overlap_.add(overlap_of(box, *met));
      if (same) continue;
      // It fell below the score that counts, or is of another class.
      TaskFlip flip{sample, image, static_cast<size_t>(std::max<int64_t>(box.label, 0)), met != nullptr ? static_cast<size_t>(std::max<int64_t>(met->label, 0)) : 0,
                    box.score - sure, met != nullptr ? std::fabs(box.score - met->score) : 0};
      result.add_flip(std::move(flip));
    }
  }

  std::string output_, boxes_, scores_, classes_;
  bool labelled_ = false;
  MeanPrecision precision_[2];  // Of the reference and of the target.
  Mean matched_, overlap_;
};

}  // namespace

std::unique_ptr<TaskMetric> make_detection(const std::string& output) { return std::make_unique<Detection>(output); }

}  // namespace unmoor
