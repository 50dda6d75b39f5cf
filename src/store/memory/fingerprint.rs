//! SipHash-1-3 with 128 bits: a keyed hash of which nobody without the seed can find two texts with one result
//! (Aumasson and Bernstein, 2012; the variant that `rustc` and `siphasher` call `SipHasher13`).
//!
//! It is written out here for the text that is there at once: the crate, which also takes text in pieces, moves its state
//! through memory. The tests hold it to the crate's results.

/// The hash of `text` under `seed`.
#[inline]
pub(super) fn hash(seed: (u64, u64), text: &[u8]) -> u128 {
    let mut state = Sip {
        v0: seed.0 ^ 0x736f_6d65_7073_6575,
        v1: seed.1 ^ 0x646f_7261_6e64_6f6d ^ WIDE,
        v2: seed.0 ^ 0x6c79_6765_6e65_7261,
        v3: seed.1 ^ 0x7465_6462_7974_6573,
    };
    let (words, rest) = text.as_chunks::<8>();
    for word in words {
        state.take(u64::from_le_bytes(*word));
    }
    state.take(last_word(text, rest));
    state.v2 ^= WIDE;
    let low = state.finish();
    state.v1 ^= 0xdd;
    let high = state.finish();
    u128::from(low) | u128::from(high) << 64
}

/// What tells the form with 128 bits from the one with 64.
const WIDE: u64 = 0xee;

/// The rest of the text in the low bytes, its length in the highest.
#[inline]
fn last_word(text: &[u8], rest: &[u8]) -> u64 {
    let length = (text.len() as u64) << 56;
    if rest.is_empty() {
        return length;
    }
    // One load that begins in the word before, instead of a byte at a time: 20 instructions less.
    if let Some(tail) = text.last_chunk::<8>() {
        return length | u64::from_le_bytes(*tail) >> (64 - 8 * rest.len());
    }
    rest.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte)) | length
}

struct Sip {
    v0: u64,
    v1: u64,
    v2: u64,
    v3: u64,
}

impl Sip {
    #[inline]
    fn take(&mut self, word: u64) {
        self.v3 ^= word;
        self.round();
        self.v0 ^= word;
    }

    #[inline]
    fn finish(&mut self) -> u64 {
        self.round();
        self.round();
        self.round();
        self.v0 ^ self.v1 ^ self.v2 ^ self.v3
    }

    #[inline]
    fn round(&mut self) {
        let Self { v0, v1, v2, v3 } = self;
        *v0 = v0.wrapping_add(*v1);
        *v2 = v2.wrapping_add(*v3);
        *v1 = v1.rotate_left(13) ^ *v0;
        *v3 = v3.rotate_left(16) ^ *v2;
        *v0 = v0.rotate_left(32);
        *v2 = v2.wrapping_add(*v1);
        *v0 = v0.wrapping_add(*v3);
        *v1 = v1.rotate_left(17) ^ *v2;
        *v3 = v3.rotate_left(21) ^ *v0;
        *v2 = v2.rotate_left(32);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use siphasher::sip128::SipHasher13;

    proptest! {
        #[test]
        fn agrees_with_the_crate(seed in any::<(u64, u64)>(), text in prop::collection::vec(any::<u8>(), 0..100)) {
            let expected = SipHasher13::new_with_keys(seed.0, seed.1).hash(&text).as_u128();
            prop_assert_eq!(super::hash(seed, &text), expected);
        }
    }

    #[test]
    fn agrees_with_the_crate_at_every_length() {
        let text: Vec<u8> = (0..=255).cycle().take(600).collect();
        for length in 0..=text.len() {
            let expected = SipHasher13::new_with_keys(1, 2).hash(&text[..length]).as_u128();
            assert_eq!(super::hash((1, 2), &text[..length]), expected, "{length}");
        }
    }
}
