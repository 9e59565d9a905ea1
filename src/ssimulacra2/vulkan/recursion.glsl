// SPDX-License-Identifier: Apache-2.0
// The coefficients of the blur: 14 specialization constants a section, in Section's order.
#define COEFFICIENTS(name, first)                           \
  layout(constant_id = first) const float name##_n2 = 0.0;       \
  layout(constant_id = first + 1) const float name##_d1 = 0.0;   \
  layout(constant_id = first + 2) const float name##_p0 = 0.0;   \
  layout(constant_id = first + 3) const float name##_p1 = 0.0;   \
  layout(constant_id = first + 4) const float name##_p2 = 0.0;   \
  layout(constant_id = first + 5) const float name##_p3 = 0.0;   \
  layout(constant_id = first + 6) const float name##_b0 = 0.0;   \
  layout(constant_id = first + 7) const float name##_b1 = 0.0;   \
  layout(constant_id = first + 8) const float name##_b2 = 0.0;   \
  layout(constant_id = first + 9) const float name##_b3 = 0.0;   \
  layout(constant_id = first + 10) const float name##_f0 = 0.0;  \
  layout(constant_id = first + 11) const float name##_f1 = 0.0;  \
  layout(constant_id = first + 12) const float name##_f2 = 0.0;  \
  layout(constant_id = first + 13) const float name##_f3 = 0.0;
#define SECTION(name)                                                      \
  Section(name##_n2, name##_d1, float[4](name##_p0, name##_p1, name##_p2, name##_p3), \
      float[4](name##_b0, name##_b1, name##_b2, name##_b3),                \
      float[4](name##_f0, name##_f1, name##_f2, name##_f3))
COEFFICIENTS(k1, 1)
COEFFICIENTS(k3, 15)
COEFFICIENTS(k5, 29)
