//! What a tool's arguments look like.

use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;

/// A JSON schema. It is written out once and goes into every request as it is.
#[derive(Clone, Debug, Serialize)]
#[serde(transparent)]
pub struct Schema(Box<RawValue>);

impl Schema {
    /// The schema as it is sent.
    pub fn as_str(&self) -> &str {
        self.0.get()
    }
}

impl From<Value> for Schema {
    fn from(value: Value) -> Self {
        // A value can always be written out.
        Self(serde_json::value::to_raw_value(&value).unwrap_or_else(|_| RawValue::NULL.to_owned()))
    }
}

impl PartialEq for Schema {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_schema_is_sent_as_it_was_made() {
        let value = json!({ "type": "object", "properties": { "b": {}, "a": {} } });
        let schema = Schema::from(value.clone());
        assert_eq!(schema.as_str(), value.to_string());
        assert_eq!(serde_json::to_string(&[&schema]).unwrap(), format!("[{value}]"));
        assert_eq!(serde_json::to_value(&schema).unwrap(), value);
    }
}
