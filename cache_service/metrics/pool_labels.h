// Labels that every metric of a pool carries.
#ifndef QUIRE_CACHE_SERVICE_METRICS_POOL_LABELS_H_
#define QUIRE_CACHE_SERVICE_METRICS_POOL_LABELS_H_

#include <string>
#include <utility>

#include "cache_service/metrics/family_sink.h"

namespace quire {

inline Labels PoolLabels(const std::string& pool_name) {
  return {{"pool", pool_name}, {"tier", "device"}};
}

inline Labels With(Labels labels, std::string name, std::string value) {
  labels.emplace_back(std::move(name), std::move(value));
  return labels;
}

}  // namespace quire

#endif  // QUIRE_CACHE_SERVICE_METRICS_POOL_LABELS_H_
