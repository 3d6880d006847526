// Config options of a single data format.
#pragma once

#include <any>
#include <utility>
#include <vector>

namespace hctr {

/// The objects of a Data layer that belong to one format each ("csv", "parquet"), by the type their format reads them
/// into. At most one object of each type.
class FormatOptions {
 public:
  /// Null when the config has no such object.
  template <class T>
  const T* find() const {
    for (const std::any& given : given_)
      if (const T* options = std::any_cast<T>(&given)) return options;
    return nullptr;
  }
  /// The object, or one with every default.
  template <class T>
  const T& get() const {
    static const T defaults{};
    const T* given = find<T>();
    return given ? *given : defaults;
  }
  /// The object, added with every default when it is missing.
  template <class T>
  T& edit() {
    if (const T* given = find<T>()) return const_cast<T&>(*given);
    return std::any_cast<T&>(given_.emplace_back(T{}));
  }

 private:
  std::vector<std::any> given_;
};

}  // namespace hctr
