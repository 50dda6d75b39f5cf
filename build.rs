//! Sets the linker flags of the Node.js addon.

fn main() {
    #[cfg(feature = "napi")]
    napi_build::setup();
}
