//! Rounding of amounts and times, which are never negative. The library's `floor` and `ceil` are calls into libm on the
//! oldest processors that the addon runs on; a conversion to an integer and back is two instructions.

/// From here on a double is a whole number anyway.
const ALL_WHOLE: f64 = 9_007_199_254_740_992.0;

/// The largest whole number that is not above `number`, which is not negative.
#[inline]
pub fn floor(number: f64) -> f64 {
    if number < ALL_WHOLE { truncate(number) } else { number }
}

/// The smallest whole number that is not below `number`, which is not negative.
#[inline]
pub fn ceil(number: f64) -> f64 {
    let floor = floor(number);
    if floor < number { floor + 1.0 } else { floor }
}

#[inline]
#[expect(clippy::cast_possible_truncation, clippy::cast_precision_loss, reason = "below 2^53")]
fn truncate(number: f64) -> f64 {
    number as i64 as f64
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn agrees_with_the_library(number in prop_oneof![0.0..10.0_f64, 0.0..1e16_f64, 0.0..1e300_f64]) {
            prop_assert_eq!(super::floor(number), number.floor());
            prop_assert_eq!(super::ceil(number), number.ceil());
            prop_assert_eq!(super::ceil(number.floor()), number.floor());
        }
    }
}
