//! Where states are kept. A store decides all policies of a request in one turn, all or nothing; stores never import each other.

pub mod memory;
